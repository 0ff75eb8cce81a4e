"""What must hold of a whole installation: a table of checks that `manage.py doctor` runs."""
