"""A process that carries one message to one address, and does nothing else.

A person typed the address and the answer may come from anywhere, so this runs apart from the program, without
its environment, its database and its secrets. It opens no files except those of the packages, starts no
program, and connects to no address of this machine or of a private network unless the parcel allows it. An
audit hook enforces this, whatever the library does, including for redirects and names that resolve
differently later. The program ends the process when its time is up.

It reads one parcel as JSON from standard input and writes one line of JSON, such as {"ok": true, "service":
"Slack"} or {"ok": false, "error": "The server answered 500.", "permanent": false}.
"""

import http.client
import ipaddress
import json
import logging
import os
import re
import resource
import smtplib
import socket
import ssl
import sys
from typing import Any
from urllib.parse import unquote, urlsplit

SECONDS = 8.0  # for each network operation; the whole is limited from outside
LETTER_SECONDS = 13.0  # a mail server looks through a letter before it answers
ERROR_MAX = 300
MEMORY_MAX = 256 * 1024 * 1024
STARTS_PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"}
READABLE = ("/usr/share/zoneinfo", "/etc/localtime", "/etc/mime.types", "/etc/ssl", "/dev/null")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
UNICAST = ipaddress.ip_network("2000::/3")  # no other IPv6 addresses are assigned
# Networks that some version of the standard library takes for public: protocols, documentation, benchmarks,
# 6to4 relays, and addresses at which clouds answer their own machines.
NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "192.0.2.0/24",
            "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "2001::/23", "2001:db8::/32",
            "2620:4f:8000::/48", "3fff::/20",
        ),
    )
)  # fmt: skip
PRIVATE = "The address leads to this machine or to a private network."

refused: list[str] = []  # kept, because libraries replace the guard's errors with their own


# --- What it may do ---------------------------------------------------------------------------------------


def is_public(host: str) -> bool:
    """Whether a numeric address is on the open internet."""
    address: Any = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 6:
        embedded = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return is_public(str(embedded))
        if address not in UNICAST:
            return False
    if any(address in network for network in NOT_PUBLIC if network.version == address.version):
        return False
    return bool(address.is_global and not address.is_multicast and not address.is_reserved)


def guard(may_be_private: bool) -> None:
    """Hold the process from here on to the limits that the docstring of this module describes."""
    roots = tuple(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *READABLE))

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            _check_target(args[1], may_be_private)
        elif event in {"socket.sendto", "socket.sendmsg"}:
            raise PermissionError("A courier sends no datagrams.")
        elif event in STARTS_PROGRAMS:
            raise PermissionError("A courier starts no program.")
        elif event == "open":
            _check_file(args[0], args[2], roots)

    sys.addaudithook(hook)


def _check_target(target: Any, may_be_private: bool) -> None:
    if not isinstance(target, tuple):
        raise PermissionError("A courier connects over the network only.")
    if not may_be_private and not is_public(target[0]):
        refused.append(PRIVATE)
        raise PermissionError(PRIVATE)


def _check_file(path: Any, flags: int, roots: tuple[str, ...]) -> None:
    if isinstance(path, int):
        return
    name = os.path.realpath(os.fsdecode(path))
    writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    if writes or not any(name == root or name.startswith(root + os.sep) for root in roots):
        raise PermissionError("A courier opens no file.")


# --- A signed webhook -------------------------------------------------------------------------------------


def post(parcel: dict[str, Any]) -> dict[str, Any]:
    """Send one POST to the address that the name resolves to; a redirect counts as an error.

    The status is the whole answer: a receiver that is slow to write a page after it has taken the message.
    """
    url = urlsplit(parcel["address"])
    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.hostname or ""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    targets = [each[4] for each in found if parcel["private"] or is_public(str(each[4][0]))]
    if not targets:
        raise PermissionError(PRIVATE)
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    line = socket.create_connection(targets[0][:2], timeout=SECONDS)
    if url.scheme == "https":
        line = ssl.create_default_context().wrap_socket(line, server_hostname=host)
    connection.sock = line
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, parcel["body"].encode(), parcel["headers"])
        answer = connection.getresponse()
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return {"ok": True}
    return {
        "ok": False, "error": f"The server answered {answer.status}.", "permanent": answer.status == 410,
    }  # fmt: skip


# --- Everything that Apprise knows ------------------------------------------------------------------------


class Heard(logging.Handler):
    """A log handler that keeps the library's warnings, its only way to say why something failed.

    What it writes down while it handles an error tells more as that error.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.why = ""

    def emit(self, record: logging.LogRecord) -> None:
        if words := in_words(sys.exc_info()[1]):
            self.why = words
        elif record.levelno >= logging.WARNING:
            self.lines.append(record.getMessage())

    @property
    def said(self) -> str:
        return self.why or "; ".join(self.lines[:2]) or "The service did not take the message."


def tell(parcel: dict[str, Any]) -> dict[str, Any]:
    """Give title and body to the service that the address names; without a body, only check the address."""
    import apprise
    from apprise.plugins.email import base as mail

    heard = Heard()
    log = logging.getLogger("apprise")
    log.handlers, log.propagate = [heard], False
    log.setLevel(logging.DEBUG)
    asset = apprise.AppriseAsset(secure_logging=True, app_id="Steroids Web", app_desc="Steroids Web")
    guard(parcel["private"])
    target = apprise.Apprise.instantiate(parcel["address"], asset=asset)
    if target is None:
        return {"ok": False, "error": "The service does not understand this address.", "permanent": True}
    if "body" not in parcel:
        return {"ok": True, "service": str(target.service_name)}
    target.socket_connect_timeout = target.socket_read_timeout = SECONDS
    target.overflow_mode = apprise.OverflowMode.SPLIT
    if isinstance(target, mail.NotifyEmail):
        as_letter(target, parcel["id"])
    sent = target.notify(parcel["body"], title=parcel["title"], body_format=apprise.NotifyFormat.TEXT)
    if sent:
        return {"ok": True}
    return {
        "ok": False, "error": "; ".join(refused[:1]) or heard.said, "permanent": bool(refused),
    }  # fmt: skip


def as_letter(target: Any, uid: str) -> None:
    """Give a letter the same Message-ID at each try, by which a mailbox knows one that came twice.

    It also says that no person wrote it, so that none who is away answers it.
    """
    from apprise.plugins.email import base as mail

    mail.make_msgid = lambda domain: f"<{uid}@{domain}>"
    target.headers = {"Auto-Submitted": "auto-generated"} | target.headers
    target.socket_connect_timeout = LETTER_SECONDS


# --- Words that may be kept -------------------------------------------------------------------------------

# The first that fits counts.
WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "The server did not answer in time."),
    (socket.gaierror, "There is no such host."),
    (MemoryError, "The server's answer is too long."),
    (http.client.RemoteDisconnected, "The server closed the connection without an answer."),
    (smtplib.SMTPServerDisconnected, "The server closed the connection without an answer."),
    (smtplib.SMTPAuthenticationError, "The mail server does not take this user name and password."),
    (http.client.HTTPException, "What the server answered is not HTTP."),
    (ConnectionRefusedError, "No server takes connections at this address."),
    (ConnectionError, "The connection broke."),
)


def in_words(error: BaseException | None) -> str:
    """Return what the error means to whoever set up the address; empty if that is not known."""
    if isinstance(error, smtplib.SMTPServerDisconnected) and isinstance(error.__context__, OSError):
        error = error.__context__
    if words := next((words for kind, words in WORDS if isinstance(error, kind)), ""):
        return words
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return " ".join(_answered(*answer) for answer in list(error.recipients.values())[:2])
    if isinstance(error, smtplib.SMTPResponseException):
        return _answered(error.smtp_code, error.smtp_error)
    return str(error) if isinstance(error, smtplib.SMTPException) else ""


def _answered(code: int, said: bytes | str) -> str:
    words = said if isinstance(said, str) else said.decode(errors="replace")
    return f"The mail server answered {code}: {words.strip().rstrip('.')}."


def redacted(address: str, text: str) -> str:
    """Return an error as one line in which the parts of the address, except its host, are masked."""
    host = (urlsplit(address).hostname or "").lower()
    rest = re.sub(r"^[a-z0-9+.-]*://", "", address, flags=re.IGNORECASE)
    raw = re.split(r"[/:@?&=#,;\s]+", rest)
    pieces = {*raw, *map(unquote, raw)}
    for piece in sorted(pieces - {""}, key=len, reverse=True):
        if len(piece) >= 4 and piece.lower() != host:
            text = text.replace(piece, "***")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:ERROR_MAX]


def carry(parcel: dict[str, Any]) -> dict[str, Any]:
    """Deliver the parcel and return what came of it; an error is one line, never a traceback."""
    try:
        if parcel["kind"] == "webhook":
            guard(parcel["private"])
            return post(parcel)
        return tell(parcel)
    except PermissionError as error:
        return {"ok": False, "error": str(error), "permanent": True}
    except (OSError, ValueError, MemoryError, http.client.HTTPException) as error:
        return {"ok": False, "error": in_words(error) or f"{type(error).__name__}: {error}"}


def main() -> None:
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))  # a library reads an answer whole
    parcel = json.load(sys.stdin)
    done = carry(parcel)
    if "error" in done:
        done["error"] = redacted(parcel["address"], done["error"])
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main()
