"""Building and testing: the target branch before anybody works on it, and what was handed in."""
