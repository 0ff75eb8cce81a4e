"""A model on loopback for commands of four vendors: no model, no network, the same answer every time.

`python -m tests.real_agents.stub --port 8123` serves it to try a command by hand; `--script` names what the
model does (scripts.py), `--fault` how it fails (FAULTS).
"""

import argparse
import json
import socket
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.real_agents.scripts import SCRIPTS, Script, next_step, work
from tests.real_agents.wires import WIRES, Asked, Wire

# Those of the wire formats, and what can befall a stream: cut off without its end mark, closed properly in
# the middle of an answer, never going on, and no answer at all.
STREAM_FAULTS = ("cut", "short", "hang", "mute")
FAULTS = (*sorted(WIRES[-1].problems("")), *STREAM_FAULTS)
LONGEST_HANG = 600.0


@dataclass(frozen=True)
class Seen:
    """One request that came in."""

    at: float
    method: str
    path: str
    wire: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    status: int = 0


class Handler(BaseHTTPRequestHandler):
    """Answers one connection; everything it knows is in the request and in the stub's settings."""

    protocol_version = "HTTP/1.1"
    server: "ModelStub"

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        wire = next((wire for wire in WIRES if wire.takes(path)), None)
        if wire is None:
            self.refuse(404, "no such address")
            return
        try:
            asked = wire.read(path, json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.refuse(400, f"not a request of this format: {error!r}")
            return
        self.answer(wire, asked)

    def do_GET(self) -> None:
        self.refuse(404, "no such address")

    def do_CONNECT(self) -> None:
        """Somebody took us for a proxy on the way to elsewhere."""
        self.refuse(403, "nothing beyond this machine")

    def refuse(self, status: int, message: str) -> None:
        self.note(status)
        self.send_json(status, {"error": {"message": message}})

    def answer(self, wire: Wire, asked: Asked) -> None:
        fault = self.server.fault
        problems = wire.problems(asked.model)
        if fault and fault not in problems and fault not in STREAM_FAULTS:
            self.refuse(400, f"{wire.name} knows no {fault}")
            return
        problem = problems.get(fault)
        self.note(problem.status if problem else 200, wire, asked)
        if fault == "mute":
            self.wait_for_the_end()
            return
        if problem:
            self.send_json(problem.status, problem.body, problem.headers)
            return
        reply = next_step(self.server.script, asked)
        if not asked.streams and fault not in STREAM_FAULTS:
            self.send_json(200, wire.whole(asked, reply))
            return
        self.stream(wire.stream(asked, reply), fault)

    def stream(self, events: list[bytes], fault: str) -> None:
        """Server-sent events in chunks, as vendors send them."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events[:1] if fault else events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if fault == "hang":
            self.wait_for_the_end()
        if fault in ("", "short"):
            self.wfile.write(b"0\r\n\r\n")

    def send_json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def wait_for_the_end(self) -> None:
        """Hold the connection until the other side or the stub itself ends."""
        self.close_connection = True
        self.connection.settimeout(0.2)
        deadline = time.monotonic() + LONGEST_HANG
        while not self.server.closing.is_set() and time.monotonic() < deadline:
            try:
                if not self.connection.recv(1024):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def note(self, status: int, wire: Wire | None = None, asked: Asked | None = None) -> None:
        path = urlsplit(self.path).path
        more = (wire.name, asked.model, tuple(asked.tools)) if wire and asked else ("", "", ())
        self.server.seen.append(Seen(time.monotonic(), self.command, path, *more, status))

    def log_message(self, format: str, *words: Any) -> None:
        """Nothing on stderr; `seen` has it all."""


class ModelStub(ThreadingHTTPServer):
    """Serves while it is open; `seen` is what was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, script: Script = work, fault: str = "", port: int = 0) -> None:
        if fault and fault not in FAULTS:
            raise ValueError(f"{fault!r} is none of {', '.join(FAULTS)}")
        super().__init__(("127.0.0.1", port), Handler)
        self.script, self.fault = script, fault
        self.seen: list[Seen] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def turns(self) -> list[Seen]:
        """The requests that came from a model's turn: those with tools."""
        return [one for one in self.seen if one.tools]

    def __enter__(self) -> "ModelStub":
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error here."""


def closed_address() -> str:
    """An address on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="work")
    parser.add_argument("--fault", choices=FAULTS, default="")
    wanted = parser.parse_args()
    with ModelStub(SCRIPTS[wanted.script], wanted.fault, wanted.port) as stub:
        print(f"A model that only pretends: {stub.url}", flush=True)
        shown = 0
        try:
            while True:
                time.sleep(0.2)
                for one in stub.seen[shown:]:
                    print(one.status, one.method, one.path, one.model, flush=True)
                    shown += 1
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
