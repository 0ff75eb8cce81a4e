"""Refusals that tell a person or an agent what happened, to what, and what to do next."""

from typing import Any


class Refused(Exception):
    """A request that the program declines. `status` is the HTTP status with which the API reports it."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        status: int = 409,
        details: list[Any] | None = None,
        **extra: Any,
    ) -> None:
        self.code, self.message, self.hint, self.status = code, message, hint, status
        self.details, self.extra = details or [], extra
        super().__init__(message)

    def as_json(self) -> dict[str, Any]:
        """Return the body of the API's error reply."""
        body = {"code": self.code, "message": self.message, "hint": self.hint, **self.extra}
        return {**body, "details": self.details} if self.details else body


class Invalid(Refused):
    """A request that is declined for what it says, such as a name that nobody knows."""

    def __init__(self, code: str, message: str, hint: str, **more: Any) -> None:
        super().__init__(code, message, hint, status=422, **more)
