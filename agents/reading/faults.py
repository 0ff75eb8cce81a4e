"""Core: signs that the surroundings failed, not the work."""


def environment_fault(output: str, exit_code: int | None, reason: str = "") -> str:
    """A sentence, or nothing."""
    if exit_code == 127:
        return "A program is missing (exit code 127)."
    return ""
