"""Core: whether the work may end and how, and what a rollback takes back.

Caps, convergence and tasks that go in circles are judged here.
"""
