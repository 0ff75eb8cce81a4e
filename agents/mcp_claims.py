"""The runs that callers of the MCP server have claimed; each is kept alive while its agent calls tools."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from agents import cli

PATIENCE = 20.0  # seconds for which a call is retried while the server restarts
IDLE = 15 * 60.0  # seconds without a tool call after which a claimed run gets no more beats
CLAIMS_MAX = 200  # claims that one HTTP server remembers

Here = Context[Any, Any]


class Claim:
    """A run that was claimed through this server. It is kept alive while its agent calls tools."""

    def __init__(self, target: cli.Target, told: cli.Reply) -> None:
        self.run = told["run"]
        self.target = cli.Target(target.url, told["token"], told["task"])
        self.addresses = {name: cli.own_path(address) for name, address in told["addresses"].items()}
        self.beat_seconds = max(float(told["beat_seconds"]), 0.05)
        self.used = time.monotonic()
        self.over = threading.Event()
        self.stop = ""
        threading.Thread(target=self._beat, name=f"beat-{self.run}", daemon=True).start()

    def api(self) -> cli.Api:
        """Return an API client that uses the run's own token."""
        self.used = time.monotonic()
        return cli.Api(lambda: self.target, PATIENCE)

    def _beat(self) -> None:
        quick = cli.Api(lambda: self.target, 0)
        while not self.over.wait(self.beat_seconds) and time.monotonic() - self.used < IDLE:
            try:
                answer = quick.post(self.addresses["beat"])
            except cli.Stop as stop:
                if stop.code != cli.UNREACHABLE:
                    self.over.set()
                continue
            self.stop = cli.line(answer.get("reason")) if answer.get("stop") else ""
        self.over.set()  # the token may claim again


class Sessions:
    """The token that each caller uses, and the run that this token has claimed through this server."""

    def __init__(self, find: Callable[[Here], cli.Target]) -> None:
        self._find = find
        self._claims: dict[str, Claim] = {}
        self._lock = threading.Lock()

    def target(self, ctx: Here) -> cli.Target:
        """Return the caller's own URL and token. Raises cli.Stop."""
        return self._find(ctx)

    def claim_of(self, target: cli.Target) -> Claim | None:
        """Return what this token has claimed here, or None if that is nothing or the run is over."""
        with self._lock:
            claim = self._claims.get(_key(target))
            if claim and claim.over.is_set():
                del self._claims[_key(target)]
                return None
            return claim

    def remember(self, target: cli.Target, claim: Claim) -> None:
        """Remember what this token has claimed. Raises ToolError if too many claims are remembered."""
        with self._lock:
            self._claims = {key: each for key, each in self._claims.items() if not each.over.is_set()}
            if len(self._claims) >= CLAIMS_MAX:
                raise ToolError("Too many runs are claimed through this server; use another one.")
            self._claims[_key(target)] = claim


def _key(target: cli.Target) -> str:
    return hashlib.sha256(target.token.encode()).hexdigest()
