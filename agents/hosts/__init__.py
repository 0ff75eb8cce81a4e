"""What holds processes and git on an agent host."""
