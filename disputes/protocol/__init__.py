"""The rules of the protocol of rounds, as pure functions: text and values go in, values come out."""
