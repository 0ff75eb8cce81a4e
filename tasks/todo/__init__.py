"""TODO.md to rows and back."""
