"""What people and agents say beside the work."""
