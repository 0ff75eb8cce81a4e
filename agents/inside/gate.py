"""The only way out of a run's sandbox: a process that the shim forks, beside it and outside the sandbox.

It listens on a socket of the run's own. A request for /api/v1/ goes to this host's API, whose URL lies in the
folder, and only with the token of this very run. As a proxy (CONNECT and absolute URLs) it opens connections
to the hosts that the run may reach, and to nothing on this machine or in a private network unless the
operator named that very host. What it refuses is said in the answer and once in the run's log; who asks on
and on for the same host hears nothing any more, since npm asks without an end as long as it is answered. It
ends with the shim.

Standard library only, because a bare Python imports it.
"""

import contextlib
import json
import os
import re
import socket
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SOCKET = "gate"
REACHED, UNREACHED = "reached", "unreached"
REASONS = UNNAMED, PRIVATE, AWAY, SHUT = "unnamed", "private", "away", "shut"  # why a host was not reached
SAYS = {
    AWAY: "This host itself does not reach {}.",
    SHUT: "This host's proxy lets nothing through to {}.",
}
REFUSALS = {b"403", b"407"}  # of a proxy that would have to allow the host, or to be told a password
ADDRESS, CONTEXT = "api.url", "context.json"
API = b"/api/v1/"
PORTS = {"http": 80, "https": 443}
CHUNK = 64 * 1024
HEAD_MAX = 64 * 1024
BODY_MAX = 32 * 1024 * 1024
PATIENCE = 60.0  # seconds to read from a client, and to connect
CONNECTIONS = 128
NAMED_MAX = 200
TOLD_MAX = 20
ANSWERED_MAX = 30  # times that a run hears of one host that it cannot be reached
WEB_PORTS = (80, 443)
TARGET = re.compile(r"(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253}):(?P<port>[0-9]{1,5})", re.IGNORECASE)
VERSIONS = {b"HTTP/1.1", b"HTTP/1.0"}
WORD = re.compile(rb"[^\x00-\x20\x7f]+")
HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
FOREIGN = "The sandbox lets requests to the API through with this run's own token only."
HINT = "Send the token in the file that STEROIDS_CONTEXT names, as the command `steroids` does."
CERTIFICATES = "Tell whoever runs this host; its SSL_CERT_FILE may name an authority of one's own."
HELPS = {
    UNNAMED: ". An agent reaches the hosts in its settings (hosts), build and tests those that the project "
    "names (allowed_hosts).",
    PRIVATE: ", which lies on this machine or in a private network. Only the operator opens it: to every run "
    "by STEROIDS_SANDBOX_HOSTS, to an agent alone by its settings (hosts).",
}
NOT_CARRIED = {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade"}


class Refused(Exception):
    """The gate does not let this through. It holds an HTTP status, a sentence for people, and what to do."""

    def __init__(self, status: str, says: str, hint: str = "") -> None:
        super().__init__(says)
        self.status, self.says, self.hint = status, says, hint


class Gate:
    """Serves the connections of one run."""

    def __init__(self, folder: Path, rules: dict[str, Any]) -> None:
        self.folder = folder
        self.hosts: list[str] = rules["hosts"]
        self.trusted: list[str] = rules["trusted"]
        self.upstream: str = rules["upstream"]
        self.token = own_token(folder) if rules["api"] else b""
        self.reached: set[str] = set()
        self.told: set[str] = set()
        self.unreached: Counter[str] = Counter()
        self.private_names: dict[str, bool] = {}
        self.lock = threading.Lock()

    def serve(self, server: socket.socket) -> None:
        free = threading.Semaphore(CONNECTIONS)
        while True:
            free.acquire()
            here, _ = server.accept()
            threading.Thread(target=self.one, args=(here, free), daemon=True).start()

    def one(self, here: socket.socket, free: threading.Semaphore) -> None:
        """Serve one connection from inside, which carries one request."""
        try:
            with here:
                here.settimeout(PATIENCE)
                try:
                    self.answer(here)
                except Refused as refused:
                    _say(here, refused)
        except (OSError, ValueError):
            pass
        finally:
            free.release()

    def answer(self, here: socket.socket) -> None:
        head, rest = _head(here)
        line, headers = _read(head)
        method, target, version = line
        if method == b"CONNECT":
            there, greeting = self.connect(target.decode("ascii", "replace"))
            here.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + greeting)
            _both_ways(here, there, rest)
        elif target.startswith(b"http://"):
            url = urlsplit(target.decode("ascii"))
            there, _ = self.connect(f"{url.hostname}:{url.port or 80}", is_plain=True)
            whole = _path(target)
            if self.upstream:  # it must not read another host out of the URL than was allowed
                whole = f"http://{url.hostname}:{url.port or 80}".removesuffix(":80").encode() + whole
            self.forward(here, there, b" ".join([method, whole, version]), headers, rest)
        elif target.startswith(API) and b".." not in re.split(rb"[/\\]", _decoded_path(target)):
            self.to_api(here, line, headers, rest)
        else:
            raise Refused("404 Not Found", "There is nothing here but the API of Steroids Web.")

    def to_api(self, here: socket.socket, line: list[bytes], headers: list[bytes], rest: bytes) -> None:
        """Pass a request to this host's API, if it carries the token of this run."""
        self.check_token(headers)
        method, target, version = line
        there, host, prefix = self.api()
        # A header name with an underscore could be one with which a proxy tells the server what the path is.
        carried = [
            header
            for name, header, _ in _by_name(headers)
            if name not in {b"host", b"cookie"} and b"_" not in name
        ]
        whole = b" ".join([method, prefix + target, version])
        self.forward(here, there, whole, [b"Host: " + host, *carried], rest)

    def check_token(self, headers: list[bytes]) -> None:
        """Raise Refused unless the request has exactly one token, which is this run's."""
        if not self.token:
            raise Refused("403 Forbidden", "This run has no token, so it reaches no API.")
        sent = [value for name, _, value in _by_name(headers) if name == b"authorization"]
        words = sent[0].split() if len(sent) == 1 else []
        if len(words) != 2 or words[0].lower() != b"bearer" or words[1] != self.token:
            if sent:
                self.tell(FOREIGN)
            raise Refused("403 Forbidden", FOREIGN, HINT)

    def forward(
        self, here: socket.socket, there: socket.socket, line: bytes, headers: list[bytes], rest: bytes
    ) -> None:
        """Pass on one request with a body of known length, and its answer; then the connection ends."""
        named = _by_name(headers)
        lengths = [value.strip() for name, _, value in named if name == b"content-length"]
        is_chunked = any(name == b"transfer-encoding" for name, _, _ in named)
        if is_chunked or len(lengths) > 1 or not all(map(bytes.isdigit, lengths)):
            raise Refused("411 Length Required", "Send a body with one Content-Length.")
        length = int(lengths[0]) if lengths else 0
        if length > BODY_MAX:
            raise Refused("413 Content Too Large", f"At most {BODY_MAX} bytes pass.")
        carried = [
            header
            for name, header, _ in named
            if name not in NOT_CARRIED and not name.startswith((b"x-forwarded", b"forwarded"))
        ]
        with there:
            there.sendall(b"\r\n".join([line, *carried, b"Connection: close", b"", b""]) + rest[:length])
            left = length - len(rest[:length])
            while left > 0:
                if not (data := here.recv(min(CHUNK, left))):
                    return
                there.sendall(data)
                left -= len(data)
            there.settimeout(None)
            while data := there.recv(CHUNK):
                here.sendall(data)

    def api(self) -> tuple[socket.socket, bytes, bytes]:
        """Connect to this host's API, wherever it answers at present.

        Return the connection, the API's Host header, and the prefix of its paths. Raises Refused.
        """
        try:
            url = urlsplit((self.folder / ADDRESS).read_text())
            usual = PORTS[url.scheme]
            host, prefix = url.netloc.rpartition("@")[2].encode("ascii"), url.path.rstrip("/").encode("ascii")
            if not url.hostname:
                raise ValueError("names no host")
            there = socket.create_connection((url.hostname, url.port or usual), PATIENCE)
            return (_over_tls(there, url.hostname) if url.scheme == "https" else there), host, prefix
        except (OSError, ValueError, KeyError):
            raise Refused("502 Bad Gateway", "The API cannot be reached; try again.") from None

    def connect(self, target: str, *, is_plain: bool = False) -> tuple[socket.socket, bytes]:
        """Return a connection to a host outside, and what that host has said already.

        Raises Refused if the run may not or cannot reach it.
        """
        found = TARGET.fullmatch(target)
        if not found:
            raise Refused("400 Bad Request", "That is no host and port.")
        host, port = found["host"].strip("[]").lower().rstrip("."), int(found["port"])
        is_trusted = is_named(host, port, self.trusted)
        if not is_trusted and not is_named(host, port, self.hosts):
            self.refuse(host, port, PRIVATE if _is_private_address(host) else UNNAMED)
        if self.upstream and not _is_private_address(host):
            if not is_trusted and self.is_private_name(host):
                self.refuse(host, port, PRIVATE)
            there, greeting = self.through_upstream(host, port, is_plain)
        else:
            there, greeting = self.direct(host, port, is_trusted), b""
        self.note(_shown(host, port))
        return there, greeting

    def direct(self, host: str, port: int, is_trusted: bool) -> socket.socket:
        from disputes.notifications.courier import is_public

        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            self.miss(host, port, f"{host} is not known: {error.strerror}.")
        targets = [each[4] for each in addresses if is_trusted or is_public(str(each[4][0]))]
        if not targets:
            self.refuse(host, port, PRIVATE)
        for number, address in enumerate(targets, 1):
            try:
                return socket.create_connection(address[:2], PATIENCE)
            except OSError as error:
                if number == len(targets):
                    self.miss(host, port, f"{host} does not answer: {error.strerror}.")
        raise AssertionError

    def is_private_name(self, host: str) -> bool:
        """Whether this host knows the name, and only as one of private addresses.

        A proxy looks names up itself, and may lie on this machine or within the firewall.
        """
        from disputes.notifications.courier import is_public

        known = self.private_names.get(host)
        if known is None:
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError:  # many networks with a proxy know no names of others
                found = []
            private = bool(found) and not any(is_public(str(each[4][0])) for each in found)
            known = private or host.endswith(".localhost")
            if len(self.private_names) >= NAMED_MAX:
                self.private_names.clear()
            self.private_names[host] = known
        return known

    def through_upstream(self, host: str, port: int, is_plain: bool) -> tuple[socket.socket, bytes]:
        """Connect through the proxy that this host itself must use, and which looks up names itself.

        Return also what has come after the proxy's answer: a server may speak first.
        """
        url = urlsplit(self.upstream)
        try:
            there = socket.create_connection((url.hostname or "", url.port or 3128), PATIENCE)
            if is_plain:
                return there, b""
            there.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            head, greeting = _head(there)
        except OSError as error:
            self.miss(host, port, f"This host's proxy does not answer: {error}.")
        status = next(iter(head.split(b" ")[1:2]), b"")
        if status != b"200":
            there.close()
            why = SHUT if status in REFUSALS else AWAY
            self.miss(host, port, SAYS[SHUT].format(host), why)
        return there, greeting

    def note(self, name: str) -> None:
        """Record that a host was reached, for whoever decides what the project's builds may reach."""
        with self.lock:
            if name in self.reached or len(self.reached) >= NAMED_MAX:
                return
            self.reached.add(name)
            with (self.folder / REACHED).open("a") as file:
                file.write(f"{name}\n")

    def refuse(self, host: str, port: int, why: str) -> NoReturn:
        """Refuse a host, and record why for whoever says what to do about it. Raises Refused."""
        shown = _shown(host, port)
        says = f"The sandbox lets nothing through to {shown}{HELPS[why]}"
        self.tell(says, f"{shown} {why}")
        raise self.answer_to(shown, Refused("403 Forbidden", says))

    def miss(self, host: str, port: int, says: str, why: str = AWAY) -> NoReturn:
        """Record that a host which the run may reach cannot be reached. Raises Refused.

        The log does not quote the system's error: whoever looks for causes there would take it for one of the
        run's.
        """
        shown = _shown(host, port)
        self.tell(SAYS[why].format(shown), f"{shown} {why}")
        raise self.answer_to(shown, Refused("502 Bad Gateway", says)) from None

    def answer_to(self, shown: str, refused: Refused) -> Exception:
        """Return the refusal; if that host or many were refused, what closes the connection unanswered."""
        with self.lock:
            if shown not in self.unreached and len(self.unreached) >= NAMED_MAX:
                return ConnectionAbortedError(shown)
            self.unreached[shown] += 1
            return refused if self.unreached[shown] <= ANSWERED_MAX else ConnectionAbortedError(shown)

    def tell(self, says: str, unreached: str = "") -> None:
        """Say once in the run's log what was refused or failed, and record which host it was about."""
        with self.lock:
            if says in self.told or len(self.told) >= TOLD_MAX:
                return
            self.told.add(says)
            if unreached:
                with (self.folder / UNREACHED).open("a") as hosts:
                    hosts.write(f"{unreached}\n")
            log = os.open(self.folder / "output.log", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            with os.fdopen(log, "wb") as file:
                file.write(f"\n[sandbox] {says}\n".encode())


def is_named(host: str, port: int, names: list[str]) -> bool:
    """Whether one of the names covers that host and port: host, host:port, *.domain, or * for all."""
    for name in names:
        pattern, _, own = (
            name.lower().rpartition(":") if re.search(r":\d+\Z", name) else (name.lower(), "", "")
        )
        if own and int(own) != port or not own and port not in WEB_PORTS:
            continue
        if pattern == "*" or pattern.strip("[]") == host:
            return True
        if pattern.startswith("*.") and host.endswith(pattern[1:]):
            return True
    return False


def own_token(folder: Path) -> bytes:
    """Return the token that the host gave the run in this folder; empty if it gave none."""
    try:
        context = json.loads((folder / CONTEXT).read_text())
    except FileNotFoundError:
        return b""
    return str(context.get("token", "")).encode()


def _shown(host: str, port: int) -> str:
    return host if port in WEB_PORTS else f"{host}:{port}"


def _is_private_address(host: str) -> bool:
    """Whether the host is this machine or an IP address that is not public, in any notation.

    A name is not looked up for a run that may not reach it, because that would be a way out.
    """
    from disputes.notifications.courier import is_public

    with contextlib.suppress(OSError):  # 127.1, 0x7f000001 and 2130706433 are addresses too
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        return host == "localhost" or not is_public(host)
    except ValueError:
        return False


def _head(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return the request or answer up to the empty line, and what has come after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > HEAD_MAX:
            raise Refused("431 Request Header Fields Too Large", "The head is too long.")
        if not (more := connection.recv(CHUNK)):
            raise ValueError("ended early")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _read(head: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the three words of the first line, and the other lines. Raises Refused."""
    first, *headers = head.split(b"\r\n")
    words = first.split(b" ")
    is_sound = len(words) == 3 and all(map(WORD.fullmatch, words)) and words[2] in VERSIONS
    if not is_sound or not all(HEADER.fullmatch(header) for header in headers):
        raise Refused("400 Bad Request", "That is no request.")
    return words, headers


def _by_name(headers: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    """Return each header's name in lower case, its whole line, and its value."""
    parts = [(header, *header.partition(b":")) for header in headers]
    return [(name.lower(), header, value) for header, name, _, value in parts]


def _decoded_path(target: bytes) -> bytes:
    return unquote_to_bytes(target.partition(b"?")[0])


def _over_tls(there: socket.socket, host: str) -> socket.socket:
    """Encrypt the connection to a server whose certificate is trusted. Raises Refused and OSError."""
    import ssl  # most gates talk only to this machine, and save the module's megabytes

    try:
        return ssl.create_default_context().wrap_socket(there, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        says = f"The certificate of the API's server {host} is not trusted here: {error.verify_message}."
        raise Refused("500 Internal Server Error", says, CERTIFICATES) from None


def _path(target: bytes) -> bytes:
    rest = target.partition(b"://")[2]
    return b"/" + rest.partition(b"/")[2]


def _say(here: socket.socket, refused: Refused) -> None:
    answer = {"code": "sandbox", "message": refused.says, "hint": refused.hint}
    body = json.dumps(answer).encode() + b"\n"
    head = f"HTTP/1.1 {refused.status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    here.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def _both_ways(here: socket.socket, there: socket.socket, rest: bytes) -> None:
    from agents.inside.first_process import pump

    with there:
        here.settimeout(None)
        there.settimeout(None)
        there.sendall(rest)
        back = threading.Thread(target=pump, args=(there, here), daemon=True)
        back.start()
        pump(here, there)
        back.join()


def serve(folder: Path, rules: dict[str, Any], *, listening: int) -> None:
    """Serve for the rest of this process. One byte to the descriptor `listening` says that it listens."""
    os.environ.update(rules["certificates"])
    os.chdir(folder)  # the path of a socket is short
    with contextlib.suppress(FileNotFoundError):
        os.unlink(SOCKET)
    server = socket.socket(socket.AF_UNIX)
    server.bind(SOCKET)
    os.chmod(SOCKET, 0o600)
    os.chown(SOCKET, rules["user"], rules["user"])  # -1: the socket stays ours
    server.listen(CONNECTIONS)
    os.write(listening, b"1")
    Gate(folder, rules).serve(server)
