"""Start a server that dies with its parent: `parent_death.py PARENT-PID [--group] PROGRAM ARGUMENT…`.

The kernel sends TERM when the parent ends, however it ends. If it ended before we asked, we never start.
With `--group` whatever the program started, such as git its ssh, is killed with it: this process stays, as
the leader of their group.
"""

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(0)
    if sys.argv[2] == "--group":
        sys.exit(hold(sys.argv[3:]))
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606


def hold(argv: list[str]) -> int:
    """The program's exit code; 128 and more for a signal."""
    signal.signal(signal.SIGTERM, lambda number, frame: os.killpg(0, signal.SIGKILL))
    child = os.fork()
    if not child:
        os.execv(argv[0], argv)  # noqa: S606
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
