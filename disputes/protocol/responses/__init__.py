"""Core: reading a coder's response, with its answers and its disagreements.

It also tells answers from mere mentions, arguments and questions, and counts how much is declined.
"""
