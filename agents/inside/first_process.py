"""The first process in a sandbox: `first_process.py READY PORT GATE NAMED PROCESSES BYTES FOLDER -- ARGV`.

It limits what its children may take, denies them calls of the kernel that no sandbox holds, carries
connections to 127.0.0.1:PORT to the socket GATE, writes one byte to the descriptor READY once the sandbox is
set up, and ends as the command does. NAMED are the servers of this machine that the run may reach, such as
127.0.0.1:11434: they answer at the same port inside, because programs ask no proxy for them.

Started with `python -I -S`; standard library only.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading

CHUNK = 64 * 1024
CONNECTIONS = 128
OPEN_FILES = 16 * 1024
COUNTS_BY_NAMESPACE = (5, 14)  # older kernels also count the operator's own processes
# For each machine, its ways into the kernel (AUDIT_ARCH) with their numbers of unshare, clone, shmget and
# socket, and of what is answered as by a kernel without it: add_key, request_key, keyctl, and of 32 bits ipc
# and socketcall, whose arguments lie where no filter can look.
WAYS_IN = {
    "x86_64": {
        0xC000003E: (272, 56, 29, 41, 248, 249, 250),
        0x40000003: (310, 120, 395, 359, 286, 287, 288, 117, 102),
    },
    "aarch64": {
        0xC00000B7: (97, 220, 194, 198, 217, 218, 219),
        0x40000028: (337, 120, 307, 281, 309, 310, 311),
    },
}
FAMILIES = (1, 2, 10, 16)  # of sockets that a run may have: unix, inet, inet6, netlink
EVERYWHERE = (425, 426, 427, 435)  # the same: io_uring_setup, io_uring_enter, io_uring_register and clone3
SEGMENT_MAX = 64 * 1024  # bytes of System V's shared memory; the kernel lets there be 4,096 of these
X32 = 0x40000000  # a third way in, whose numbers begin here; no other number is as large
CLONE_NEWUSER = 0x10000000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
LOAD, EQUALS, AT_LEAST, HAS_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of the kernel's filters
NUMBER, WAY_IN, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24  # the offsets of what may be loaded
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def main() -> int:
    words = sys.argv[1:]
    at = words.index("--")
    ready, port, gate, named, processes, size, folder = words[:at]
    argv = words[at + 1 :]
    bound(int(processes), int(size))
    refuse_calls()
    if gate:
        listen(int(port), gate)
    for server in named.split(",") if named else ():
        with contextlib.suppress(OSError):  # two names for one port, or a port that only root may use
            listen(int(server.rpartition(":")[2]), gate, server)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the command gets it too, and has a moment to end
    os.write(int(ready), b"1")
    os.close(int(ready))
    try:
        child = subprocess.Popen(argv, cwd=folder, env={**os.environ, "PWD": folder}, close_fds=False)
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        where = " in the sandbox, which shows neither the data folder nor a whole home" if is_gone else ""
        sys.stderr.write(f"cannot start {argv[0]}: {error.strerror}{where}\n")
        return 127 if is_gone else 126
    code = child.wait()
    return code if code >= 0 else 128 - code


def bound(processes: int, size: int) -> None:
    """Set limits that no child can raise: processes, the size of one file, open files, no core dumps."""
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: size, resource.RLIMIT_NOFILE: OPEN_FILES}
    release = tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2])
    if release >= COUNTS_BY_NAMESPACE:
        wanted[resource.RLIMIT_NPROC] = processes
    for what, most in wanted.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def refuse_calls() -> None:
    """Keep children from user namespaces, in which they would be root for much of the kernel, and from more.

    If the host is not root, bubblewrap sees to the former, and the kernel answers in the same way. The flags
    of clone3 lie where no filter can look, so it is answered as by an older kernel, and libraries fall back
    to clone. A process has the keys of the session from which the host was started, such as tickets, and may
    leave some of its own in the kernel; no namespace separates them. Nor does one separate sockets to the
    machine that this one runs in. What io_uring does passes no filter. The memory of System V belongs to no
    process, so nobody could count a large segment.
    """
    words = call_filter(os.uname().machine)
    if not words:
        return
    program = ctypes.create_string_buffer(words)
    about = ctypes.create_string_buffer(struct.pack("HP", len(words) // 8, ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    libc.prctl(
        PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), about, ctypes.c_ulong(0), ctypes.c_ulong(0)
    )


def call_filter(machine: str) -> bytes:
    """Return the filter in the kernel's form; empty for a machine whose system calls are not known here."""
    space, unknown, size = (REFUSE | number for number in (errno.ENOSPC, errno.ENOSYS, errno.EINVAL))
    left = len(FAMILIES)
    words = [(LOAD, 0, 0, WAY_IN)]
    for way, (unshare, clone, shmget, new_socket, *others) in WAYS_IN.get(machine, {}).items():
        rules = [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, X32), (ANSWER, 0, 0, unknown)]
        for number in (*others, *EVERYWHERE):
            rules += [(EQUALS, 0, 1, number), (ANSWER, 0, 0, unknown)]
        for number in (unshare, clone):
            rules += [
                (EQUALS, 0, 4, number), (LOAD, 0, 0, FIRST_ARGUMENT), (HAS_BIT, 0, 1, CLONE_NEWUSER),
                (ANSWER, 0, 0, space), (ANSWER, 0, 0, ALLOW),
            ]  # fmt: skip
        rules += [
            (EQUALS, 0, left + 3, new_socket),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            *((EQUALS, left - passed, 0, family) for passed, family in enumerate(FAMILIES)),
            (ANSWER, 0, 0, REFUSE | errno.EAFNOSUPPORT),
            (ANSWER, 0, 0, ALLOW),
            (EQUALS, 0, 5, shmget),
            (LOAD, 0, 0, SECOND_ARGUMENT + 4),  # its upper half
            (EQUALS, 0, 2, 0),
            (LOAD, 0, 0, SECOND_ARGUMENT),
            (AT_LEAST, 0, 1, SEGMENT_MAX + 1),
            (ANSWER, 0, 0, size),
            (ANSWER, 0, 0, ALLOW),
        ]
        words += [(EQUALS, 0, len(rules), way), *rules]  # else on to the next way
    words.append((ANSWER, 0, 0, unknown))
    return b"".join(struct.pack("HBBI", *word) for word in words) if machine in WAYS_IN else b""


def listen(port: int, gate: str, named: str = "") -> None:
    """Carry connections to the port from here on: to the gate, or through it to the server `named`."""
    server = socket.create_server(("127.0.0.1", port), backlog=CONNECTIONS)
    threading.Thread(target=accept, args=(server, gate, named), daemon=True).start()


def accept(server: socket.socket, gate: str, named: str) -> None:
    free = threading.Semaphore(CONNECTIONS)
    while True:
        free.acquire()
        try:
            here, _ = server.accept()
        except OSError:
            free.release()
            continue
        threading.Thread(target=carry, args=(here, gate, named, free), daemon=True).start()


def carry(here: socket.socket, gate: str, named: str, free: threading.Semaphore) -> None:
    """Carry data both ways until both sides have finished."""
    try:
        with here, socket.socket(socket.AF_UNIX) as there:
            there.connect(gate)
            if named and not opens(there, named):
                return
            back = threading.Thread(target=pump, args=(there, here), daemon=True)
            back.start()
            pump(here, there)
            back.join()
    except OSError:
        pass
    finally:
        free.release()


def opens(gate: socket.socket, named: str) -> bool:
    """Whether the gate opened a way to that server. Nothing that comes after its answer is read."""
    gate.sendall(f"CONNECT {named} HTTP/1.1\r\nHost: {named}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := gate.recv(1)):
        head += byte
    return head.split(b" ")[1:2] == [b"200"]


def pump(source: socket.socket, target: socket.socket) -> None:
    """Carry data one way until the source ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main())
