"""Reading the first line of a finding in every notation (FND-1, ARB-1)."""
