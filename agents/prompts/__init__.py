"""The prompts: what each role is told."""
