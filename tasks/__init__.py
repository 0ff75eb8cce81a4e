"""What is to be done: projects, tasks and the record of work on them."""
