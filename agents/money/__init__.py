"""What runs cost, and the caps on that."""
