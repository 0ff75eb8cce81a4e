"""A run's first process in its sandbox: `first_process.py READY PORT GATE PROCESSES BYTES FOLDER -- ARGV…`.

It says that the sandbox stands by closing the descriptor READY after one byte, bounds what its children may
take, carries connections to 127.0.0.1:PORT to the socket GATE, and ends as the command does.

Started with `python -I -S`; standard library only.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading

CHUNK = 64 * 1024
CONNECTIONS = 128
OPEN_FILES = 16 * 1024
COUNTS_BY_NAMESPACE = (5, 14)  # older kernels count the processes of the operator as well


def main() -> int:
    words = sys.argv[1:]
    at = words.index("--")
    ready, port, gate, processes, size, folder = words[:at]
    argv = words[at + 1 :]
    bound(int(processes), int(size))
    if gate:
        listen(int(port), gate)
    signal.signal(signal.SIGTERM, lambda *_: None)  # the command hears it itself, and has its moment
    os.write(int(ready), b"1")
    os.close(int(ready))
    try:
        child = subprocess.Popen(argv, cwd=folder, close_fds=False)
    except OSError as error:
        sys.stderr.write(f"cannot start {argv[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
    code = child.wait()
    return code if code >= 0 else 128 - code


def bound(processes: int, size: int) -> None:
    """Limits that no child can raise: processes, the size of one file, open files, no core dumps."""
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: size, resource.RLIMIT_NOFILE: OPEN_FILES}
    release = tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2])
    if release >= COUNTS_BY_NAMESPACE:
        wanted[resource.RLIMIT_NPROC] = processes
    for what, most in wanted.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def listen(port: int, gate: str) -> None:
    """Carry what connects to the port from here on."""
    server = socket.create_server(("127.0.0.1", port), backlog=CONNECTIONS)
    threading.Thread(target=accept, args=(server, gate), daemon=True).start()


def accept(server: socket.socket, gate: str) -> None:
    free = threading.Semaphore(CONNECTIONS)
    while True:
        free.acquire()
        try:
            here, _ = server.accept()
        except OSError:
            free.release()
            continue
        threading.Thread(target=carry, args=(here, gate, free), daemon=True).start()


def carry(here: socket.socket, gate: str, free: threading.Semaphore) -> None:
    """Both ways, until both sides have said all."""
    try:
        with here, socket.socket(socket.AF_UNIX) as there:
            there.connect(gate)
            back = threading.Thread(target=pump, args=(there, here), daemon=True)
            back.start()
            pump(here, there)
            back.join()
    except OSError:
        pass
    finally:
        free.release()


def pump(source: socket.socket, target: socket.socket) -> None:
    """One way, until the source ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main())
