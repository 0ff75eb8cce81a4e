"""A network of our own that reaches nothing but this machine's loopback, and what tried to leave it.

Linux, as root or in a user namespace; elsewhere the tests run on the ordinary loopback and say so.
"""

import ctypes
import fcntl
import socket
import struct
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_LOOPBACK = 0x1, 0x8


def leave_the_network() -> bool:
    """Move this thread, and all that it starts from now on, into a network of its own. Whether it worked."""
    if sys.platform != "linux" or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        return False
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP | IFF_LOOPBACK))
    return True


def tries_to_leave() -> int:
    """How often something in this thread's network wanted to go where no way leads."""
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Ip:"))
    return int(dict(zip(names, values, strict=True))["OutNoRoutes"])
