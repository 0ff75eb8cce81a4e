"""Servers on this machine that take what is sent: one for HTTP, one for mail."""

import json
import socketserver
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

PATIENCE = 60


@dataclass
class Taken:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers with the statuses it was given, then with 200; may keep everybody waiting."""

    taken: list[Taken] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    location: str = ""
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def __post_init__(self) -> None:
        self.released.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Http(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        receiver.taken.append(Taken(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        receiver.arrived.set()
        receiver.released.wait(PATIENCE)
        self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
        if receiver.location:
            self.send_header("location", receiver.location)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was ended in the middle is no error of the server."""


class _Mail(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        said: dict[bytes, bytes] = self.server.answers  # type: ignore[attr-defined]
        self.wfile.write(said.get(b"", b"220 here") + b"\r\n")
        letter: list[bytes] | None = None
        for line in self.rfile:
            if letter is not None:
                if line == b".\r\n":
                    self.server.letters.append(b"".join(letter).decode())  # type: ignore[attr-defined]
                    letter = None
                    if not (answer := said.get(b".", b"250 taken")):
                        return
                    self.wfile.write(answer + b"\r\n")
                else:
                    letter.append(line)
                continue
            verb = line[:4].upper()
            if verb == b"DATA":
                letter = []
            answers = {
                b"EHLO": b"250-here\r\n250 AUTH PLAIN",
                b"DATA": b"354 go on",
                b"QUIT": b"221 bye",
            } | said
            self.wfile.write(answers.get(verb, b"250 fine") + b"\r\n")
            if verb == b"QUIT":
                return


class MailServer(socketserver.ThreadingTCPServer):
    """Keeps the letters it was given; `answers` are its own to a verb, to none yet, or to a letter (.)."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.letters: list[str] = []
        self.answers: dict[bytes, bytes] = {}


def serve(server: socketserver.BaseServer) -> threading.Thread:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    return thread


def http_server(receiver: Receiver) -> ThreadingHTTPServer:
    server = _HttpServer(("127.0.0.1", 0), _Http)
    server.receiver = receiver  # type: ignore[attr-defined]
    receiver.port = server.server_address[1]
    return server


def certificate_for(name: str, folder: Path) -> Path:
    """A key, and a certificate that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "own.pem").write_bytes(secret + made.public_bytes(Encoding.PEM))
    return folder / "own.pem"
