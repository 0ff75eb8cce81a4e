"""Core: the tools that every reader of documents uses, for lines, ids, places, words and quotes.

Data, tags and diffs are read here as well; what any of it means for a finding is said in the other
rooms.
"""
