"""The pages of the queue, and what they show, prepared for their templates."""
