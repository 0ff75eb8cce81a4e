"""The protocol of rounds as pure functions: text and values in, values out."""
