"""The process that forks shims: a bare Python that has loaded shim and gate, so that a run costs only a fork.

The host starts it (nursery.py) and writes folders to its standard input, each ended by a NUL. A shim answers
with a byte once it holds its run. The process ends when the host has ended; the shims that it forked are
independent of it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from agents.hosts.shims import shim  # noqa: E402  (a bare Python does not have the project on its path)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def folders() -> Iterator[Path]:
    """Yield the folders that the host names, until it closes the pipe."""
    left = b""
    while more := os.read(0, 65536):
        *whole, left = (left + more).split(b"\0")
        yield from (Path(os.fsdecode(name)) for name in whole)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # from the terminal in which somebody started the host
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # a garbage collection would copy the shared memory into each shim
    for folder in folders():
        if not os.fork():
            shim.hold(folder)
        os.wait()


if __name__ == "__main__":
    main()
