"""The rules of the protocol of rounds, as pure functions: text and values go in, values come out.

Nothing here imports Django or keeps a state; whoever calls it writes the rows that come of it.
"""
