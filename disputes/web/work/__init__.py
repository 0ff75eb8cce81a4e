"""The pages about a task's rounds and a project's end."""
