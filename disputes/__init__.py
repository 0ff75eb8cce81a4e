"""Who is right: conflicts between coder and reviewer, and the rulings on them."""
