"""PostgreSQL and Redis servers of the benchmark's own, and the wires to them, which can be cut and mended."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from agents.hosts.api_server import free_port

PATIENCE = 60.0  # seconds for a server to come up
CHUNK = 1 << 16
LOOPBACK = "127.0.0.1"


def wait_until(fact: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return the value of `fact` once it is true. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := fact():
            return found
        time.sleep(0.02)
    raise TimeoutError(f"{what} did not come about within {seconds:g} s")


def listens(path: Path) -> bool:
    """Whether a server answers at this socket, which can be reached from every network of this machine."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        return True
    return False


class Redis:
    """A server that stores nothing. `within` is a command prefix that puts it into another network."""

    def __init__(self, folder: Path, host: str = LOOPBACK, within: Sequence[str] = ()) -> None:
        self.folder, self.port = folder, free_port()
        self.host, self.within = host, within
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        path = self.folder / "redis.socket"
        argv = ["redis-server", "--bind", self.host, "--port", str(self.port), "--save", "",
                "--protected-mode", "no", "--unixsocket", str(path), "--dir", str(self.folder)]  # fmt: skip
        with (self.folder / "redis.log").open("ab") as output:
            self.process = subprocess.Popen(
                [*self.within, *argv], stdout=output, stderr=output, start_new_session=True
            )
        wait_until(lambda: listens(path), "Redis")

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    stop = kill


class Postgres:
    """A cluster of its own below `folder`. As root, it runs as the user `postgres`, for it refuses root.

    `within` is a command prefix that puts it into another network.
    """

    def __init__(
        self, folder: Path, environment: dict[str, str], host: str = LOOPBACK, within: Sequence[str] = ()
    ) -> None:
        self.folder, self.port = folder, free_port()
        self.environment, self.host, self.within = environment, host, within
        self.data = folder / "postgres"
        self.become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self.become = self.become if os.geteuid() == 0 else []
        self.process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def programs() -> Path | None:
        """Return the folder of the newest version that is installed; None if there is none."""
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: path.parts[4])
        on_path = shutil.which("postgres")
        return found[-1].parent if found else Path(on_path).parent if on_path else None

    def make(self) -> None:
        self.data.mkdir(mode=0o700)
        if self.become:
            shutil.chown(self.data, "postgres", "postgres")
        words = ["--username=steroids", "--auth=trust", "--encoding=UTF8", "--locale=C", str(self.data)]
        programs = self.programs()
        assert programs is not None
        subprocess.run([*self.become, str(programs / "initdb"), *words], check=True, capture_output=True,
                       cwd="/")  # fmt: skip
        with (self.data / "pg_hba.conf").open("a") as trusted:  # besides loopback, which is trusted already
            trusted.write(f"host all all {self.host}/24 trust\n")

    def start(self) -> None:
        programs = self.programs()
        assert programs is not None
        options = {"listen_addresses": self.host, "port": self.port, "unix_socket_directories": self.data,
                   "max_connections": 60, "fsync": "off"}  # fmt: skip
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "postgres.log").open("ab") as output:
            self.process = subprocess.Popen(
                [*self.within, *self.become, str(programs / "postgres"), "-D", str(self.data), *words],
                env=self.environment, stdout=output, stderr=output, start_new_session=True, cwd="/",
            )  # fmt: skip
        wait_until(self._answers, "PostgreSQL")

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.Error), psycopg.connect(self.socket_url("postgres")):
            return True
        return False

    def url(self, database: str, port: int) -> str:
        return f"postgres://steroids@{self.host}:{port}/{database}"

    def socket_url(self, database: str) -> str:
        """Return a URL that works from every network of this machine, and that no fault cuts."""
        return f"postgres://steroids@/{database}?host={self.data}&port={self.port}"

    def stop(self) -> None:
        """Stop at once (`pg_ctl stop -m immediate`): no clean shutdown, recovery at the next start."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE)


class Wires:
    """Forwards ports to servers. While it is cut, nothing passes either way, and neither side is told."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.whole = asyncio.Event()
        self.whole.set()
        self.ends: set[asyncio.StreamWriter] = set()
        threading.Thread(target=self.loop.run_forever, name="wires", daemon=True).start()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def lead_to(self, port: int) -> int:
        """Return the local port that leads to this port."""
        here = free_port()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.whole.wait()
            try:
                there = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            await asyncio.gather(self._pass(reader, there[1]), self._pass(there[0], writer))

        self._run(asyncio.start_server(serve, "127.0.0.1", here))
        return here

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ends.add(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self.whole.wait()
                writer.write(data)
                await writer.drain()
        self.ends.discard(writer)
        writer.close()

    def cut(self) -> None:
        self.loop.call_soon_threadsafe(self.whole.clear)

    def mend(self, *, forgets: bool) -> None:
        """Let everything go on; with `forgets`, reset all old connections, as a router's restart does."""

        async def again() -> None:
            if forgets:
                for end in list(self.ends):
                    end.transport.abort()
            self.whole.set()

        self._run(again())
