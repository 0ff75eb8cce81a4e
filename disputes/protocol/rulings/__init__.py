"""Core: what may be ruled, in which words a ruling is told, and whether it was followed.

Cards, prompts and records take their words from one table of choices.
"""
