"""Core: reading the first line of a finding in every notation (FND-1, ARB-1).

It says what a line states; whether a finding begins there is decided in the room around it.
"""
