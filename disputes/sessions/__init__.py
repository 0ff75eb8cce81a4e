"""Rounds about documents, as agents run them: a session is a task of the loop, its gaps are tasks beside it.

The reading is the importer's: what a session's rows say is what the same documents say in a folder.
"""
