"""Importing rounds that were written elsewhere: folders of documents become tasks, findings and answers."""
