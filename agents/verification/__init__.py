"""Building and testing the target branch before anybody works on it, and whatever is handed in."""
