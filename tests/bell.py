"""A doorbell that nobody hears: most tests need no loop."""


def silent(project_pk: int) -> None:
    """Do nothing."""
