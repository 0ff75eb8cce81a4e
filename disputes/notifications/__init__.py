"""Telling people and machines what happened.

An event leaves a notice in its own transaction (tasks.events). The job makes one delivery of it for each
channel (fanout), says what has waited too long (reminders), and sends what is due (sending), each address
in a process of its own (courier). A verb never sends, and nothing is ever decided by a time.
"""
