"""Backups: one file with the database, mirrors, keys and prices, from which an installation can go on."""
