"""One file per kind of agent command."""
