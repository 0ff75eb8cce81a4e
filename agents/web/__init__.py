"""The pages of tasks, boards, projects and runs."""
