"""The program's own settings, but passwords are hashed at once: the real way takes a third of a second each time."""

from steroidsweb.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
