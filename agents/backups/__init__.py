"""One file from which an installation goes on elsewhere: the database, the mirrors, keys and prices."""
