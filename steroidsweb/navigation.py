"""The admin's look and its sidebar."""

UNFOLD: dict[str, object] = {"SITE_TITLE": "Steroids Web", "SITE_HEADER": "Steroids Web"}
