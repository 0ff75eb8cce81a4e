"""The providers, one file for each kind of agent command."""
