"""The program's own settings, but a password is hashed at once: the real way takes a third of a second."""

from steroidsweb.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
