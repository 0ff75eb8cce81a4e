"""The REST API of agents: hand-ins, runs, agents and hosts."""
