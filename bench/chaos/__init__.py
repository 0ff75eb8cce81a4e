"""Faults, one after the other, in the middle of real work: is anything lost, doubled or stuck?"""
