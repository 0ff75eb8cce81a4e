"""What must hold of a whole installation, each as a row of one table, looked at by `manage.py doctor`."""
