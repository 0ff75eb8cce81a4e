"""What runs at the walls of a sandbox: its gate outside and its first process inside."""
