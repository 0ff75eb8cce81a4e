"""Hand-ins of agents over REST."""
