"""Rounds about documents, run by agents: a session is a task of the loop, and its gaps are tasks beside it.

The documents are read by the importer, so that a session's rows say what the same documents say in a folder.
"""
