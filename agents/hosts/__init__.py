"""The processes and the git work of an agent host."""
