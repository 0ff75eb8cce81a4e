"""What the pages of the queue show, prepared for their templates."""
