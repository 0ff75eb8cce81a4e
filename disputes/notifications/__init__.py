"""Telling people and machines what happened.

An event leaves a notice in its own transaction (tasks.events). The job turns it into one delivery per channel
(fanout), reminds people of what has waited too long (reminders), and sends what is due (sending), each
address in a process of its own (courier). A verb never sends anything itself, and the passing of time never
decides anything.
"""
