"""The `steroids` command, for agents and people: one file, standard library only, run with `python -I -S`.

It starts in a few dozen milliseconds, because an agent calls it many times in a run. Hence modules that are
slow to import (http.client, subprocess, ssl) are imported by the functions that need them, and `typing`,
`uuid` and `shutil` (which argparse loads to learn the terminal's width) never are.

Exit codes: 0 done; 1 the server refused; 2 wrong usage; 3 the server cannot be reached; 4 no URL or token;
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, BinaryIO

    Reply = dict[str, Any]
    Answer = tuple[int, str | None, bytes]
    Run = Callable[[argparse.Namespace, "Api"], Reply]
    Takes = Callable[[Any], object]  # adds something that a command takes to its parser

VERSION = "0.1.0"

DONE, REFUSED, USAGE, UNREACHABLE, NO_LOGIN, INTERRUPTED = 0, 1, 2, 3, 4, 130

API = "/api/v1/"
MAX_FILE = 256 * 1024
MAX_PATH = 1024
MAX_REPLY = 16 * 1024 * 1024
MAX_BUNDLE = 8 * 1024 * 1024
# The words before the path, by the kind of line of `git status --porcelain=v2`; and what precedes the commit.
WORDS_BEFORE_PATH = {"1": 8, "2": 9, "u": 10}
OID = "# branch.oid "
COMMITS_READ = 20  # of a hand-in, before git is asked
PULL_LOG = 32 * 1024  # bytes of output that go with one beat
PULL_LOG_MAX = 1024 * 1024  # bytes of output that a server keeps of one run
MAX_ROWS = 500
MAX_TITLE = 72
RETRY_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 5.0, 30.0
RESTARTING = (502, 503, 504)
NO_CONTENT = 204
MAX_LINE, MAX_HEADERS = 64 * 1024, 100  # of an answer's head
CUT = "the connection was cut"

VERDICTS = ("ENFORCE", "DISMISS", "ESCALATE")
ESCALATIONS = ("concurrency", "security", "performance", "architecture", "unknown")
SEVERITIES = ("critical", "high", "medium", "low")
ANSWERS = "answers to the last review: Markdown, perhaps with YAML front matter, or .json"
OURS = {"run", "show", "json", "ref"}  # of a command's arguments, those that are not sent
AMENDMENT_STATES = ("asked", "drafted", "approved", "dropped", "failed")
SHORT_REASONS = {  # as the list of disputes names them
    "architecture_disagreement": "architecture",
    "specification_ambiguity": "specification",
    "guideline_conflict": "guideline",
    "security_concern": "security",
    "scope_disagreement": "scope",
}

# Terminal sequences: strings up to their terminator on the same line, CSI, and the two-character ones. No
# class contains what starts the next match, so a hostile text costs linear time.
ESCAPES = (
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
# The characters of tasks/text/unseen.py, which this file cannot import.
INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


# An address: scheme, host, port and prefix. A name's labels have at most 63 characters.
ADDRESS = (
    r"(https?)://(\[[0-9a-f:.]+(?:%[0-9a-z]+)?\]|[^/:\[\].]{1,63}(?:\.[^/:\[\].]{1,63})*\.?)"
    r"(?::([0-9]{0,5}))?(/.*)?"
)


class Stop(Exception):
    """Ends the command, with an exit code and the lines to print on stderr."""

    def __init__(self, code: int, *lines: str, reply: Reply | None = None) -> None:
        super().__init__(*lines)
        self.code = code
        self.lines = lines
        self.reply = reply


class Gone(Exception):
    """Raised if one try failed in a way that may pass, such as a restart of the server."""


class NotHTTP(Exception):
    """Raised if the other side is not a web server."""


# --- Text that agents wrote is hostile: none of it reaches a terminal uncleaned ---


def clean(value: object) -> str:
    """Return the text without terminal escapes and control characters; newlines and tabs stay."""
    text = str(value)
    if text.isprintable():
        return text
    text = re.sub(ESCAPES, "", text.replace("\r\n", "\n"))
    return re.sub(INVISIBLE, "", text)


def line(value: object) -> str:
    """Return the cleaned text on one line, so that a title cannot pretend to be a row of ours."""
    return " ".join(clean(value).split())


def label(value: Any) -> str:
    """Return one line that names a value; for an object, its ref and its title or name."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(label(item) for item in value) or "-"
    if isinstance(value, dict):
        texts = (value.get(key) for key in ("ref", "code", "title", "name", "message", "reason"))
        return "  ".join(line(text) for text in texts if text) or "-"
    return line(value)


def quote(value: object) -> list[str]:
    """Return the cleaned text, each line behind a bar so that none can pretend to be a heading of ours."""
    text = "" if value is None else clean(value).rstrip("\n")
    return [f"    | {part}".rstrip() for part in text.split("\n")] if text.strip() else ["    not stated"]


def shorten(title: object) -> str:
    """Return a title short enough to leave room for the other columns."""
    text = line(title)
    return text if len(text) <= MAX_TITLE else text[: MAX_TITLE - 3].rstrip() + "..."


def table(header: Sequence[str], rows: Sequence[Sequence[object]], nothing: str = "") -> str:
    """Return a table with columns as wide as their widest cells, two spaces apart; `nothing` without rows."""
    if not rows:
        return nothing
    cells = [list(header), *([label(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = (map(str.ljust, row, widths) for row in cells)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def columns(rows: Iterable[Reply], *keys: str) -> list[list[object]]:
    """Return what a table of these rows shows: the values under these keys."""
    return [[row.get(key) for key in keys] for row in rows]


def say(text: str) -> None:
    """Print one line on stderr in the name of this command."""
    print(f"steroids: {text}", file=sys.stderr)


# --- Where the server is, and who we are ---


class Target:
    """A server's URL and the token to use there.

    In a run also its task, the commit at which it began, and how it brings commits.
    """

    def __init__(self, url: str, token: str, task: str = "", pulled: Reply | None = None) -> None:
        self.url = url
        self.token = token
        self.task = task
        self.base = ""
        self.pulled = pulled


def find_target() -> Target:
    """Return the target in the run's context, else in the environment's variables, else in the login file.

    A run never falls back on the login: an agent must not act as the person whose home folder it can read.
    Raises Stop if there is none.
    """
    if path := os.environ.get("STEROIDS_CONTEXT"):
        return target_in(path, "the run's context (STEROIDS_CONTEXT)")
    url, token_file = os.environ.get("STEROIDS_URL"), os.environ.get("STEROIDS_TOKEN_FILE")
    if url and token_file:
        return make_target(url, read_small(token_file, NO_LOGIN).strip(), "the environment")
    if url or token_file:
        raise Stop(NO_LOGIN, "STEROIDS_URL and STEROIDS_TOKEN_FILE only work together.", "Set both, or none.")
    path = login_path()
    if not os.path.exists(path):
        hint = "Run `steroids login --url URL` with a personal token on stdin."
        raise Stop(NO_LOGIN, "You are not logged in.", hint)
    return target_in(path, "the login file")


def target_in(path: str, source: str) -> Target:
    """Return the target that a JSON file describes. Raises Stop if it is malformed."""
    try:
        data = json.loads(read_small(path, NO_LOGIN))
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise Stop(NO_LOGIN, f"{path}, {source}, is not a JSON object.")
    target = make_target(data.get("url"), data.get("token"), source, data.get("task"))
    pulled = data.get("pulled")
    target.pulled = pulled if isinstance(pulled, dict) else None
    target.base = str((target.pulled or data).get("base") or "")
    return target


def make_target(url: object, token: object, source: str, task: object = None) -> Target:
    """Return a checked target. Raises Stop with a message that names where the values came from."""
    if not isinstance(url, str) or not parts_of(url):
        raise Stop(NO_LOGIN, f"The address in {source} must look like https://host or http://host:port.")
    if not isinstance(token, str) or not is_token(token):
        raise Stop(NO_LOGIN, f"The token in {source} is missing or malformed.")
    return Target(url.rstrip("/"), token, str(task or ""))


def parts_of(url: str) -> tuple[str, str, int | None, str] | None:
    """Return scheme, host, port and prefix of http(s)://host[:port][/prefix]; None if it is anything else.

    Loading urllib for this takes a tenth of a call.
    """
    known = re.fullmatch(ADDRESS, url, re.IGNORECASE)
    is_plain = url.isascii() and url.isprintable() and not set(url) & set(" @?#\\")
    if not known or not is_plain or not 0 < int(known[3] or 80) < 2**16:
        return None
    return known[1].lower(), known[2].strip("[]").lower(), int(known[3]) if known[3] else None, known[4] or ""


def is_token(token: str) -> bool:
    """Whether this can be sent in a header."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token


def login_path() -> str:
    """Return the path of the file in which `steroids login` keeps the URL and the token."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.config")
    return os.path.join(home, "steroids", "login.json")


# --- Files ---


def read_small(path: str, code: int = USAGE) -> str:
    """Return the text of a UTF-8 file of at most 256 KiB. Raises Stop with the code if it cannot be read."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE + 1)
            size = max(len(raw), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise Stop(code, f"Cannot read {path}: {error.strerror}.") from None
    if size > MAX_FILE:
        raise Stop(code, f"{path} is too large: {size} bytes, at most {MAX_FILE} (256 KiB) are taken.")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise Stop(code, f"{path} is not UTF-8 text (byte {error.start}).") from None


def write_private(path: str, text: str) -> None:
    """Replace a file in one step, readable by its owner only, in a folder that is, too. Raises Stop."""
    folder = os.path.dirname(path)
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except OSError as error:
        if os.path.exists(draft):
            os.unlink(draft)
        raise Stop(USAGE, f"Cannot write {path}: {error.strerror}.") from None


# --- The wire ---


class Request:
    """What is sent, the same in every try; the server knows it again by its Idempotency-Key."""

    def __init__(self, method: str, path: str, body: str | bytes | None) -> None:
        self.method = method
        self.path = path
        self.is_binary = False
        self.body = body.encode("utf-8", "replace") if isinstance(body, str) else body
        self.headers = {
            "Accept": "application/json",
            "User-Agent": f"steroids/{VERSION}",
            "Connection": "close",
        }
        if body is not None:
            kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
            self.headers |= {"Content-Type": kind, "Idempotency-Key": new_key()}


class Api:
    """Sends calls, and repeats them while the server restarts.

    `where` is asked before every try: after a restart a run's context may name another URL.
    """

    def __init__(self, where: Callable[[], Target], patience: float) -> None:
        self.where = where
        self.patience = patience

    def get(self, path: str, **query: object) -> Reply:
        """Send a GET request, without the parameters that are None."""
        wanted = given(**query)
        if wanted:
            from urllib.parse import urlencode

            path = f"{path}?{urlencode(wanted)}"
        return self.call("GET", path)

    def post(self, path: str, **fields: object) -> Reply:
        """Send a POST request, without fields that are None; it has one effect however often it is sent."""
        return self.call("POST", path, json.dumps(given(**fields), ensure_ascii=False))

    def upload(self, path: str, data: bytes) -> Reply:
        """Put a whole file at the path."""
        return self.call("PUT", path, data)

    def download(self, path: str) -> bytes:
        """Return the bytes of a file."""
        request = Request("GET", path, None)
        request.is_binary = True
        data = self.send(request)["data"]
        return data if isinstance(data, bytes) else b""

    def call(self, method: str, path: str, body: str | bytes | None = None) -> Reply:
        """Return the reply's JSON. Raises Stop that says why there is none."""
        return self.send(Request(method, path, body))

    def send(self, request: Request) -> Reply:
        """Send the same request until it is answered or patience ends. Raises Stop."""
        end = time.monotonic() + self.patience
        pause, tries = FIRST_PAUSE, 0
        while True:
            tries += 1
            left = end - time.monotonic()
            try:
                return exchange(self.target(tries), request, left)
            except Gone as gone:
                reason = str(gone)
            left = end - time.monotonic()
            if left <= 0:
                hint = "Run the same command again when it is back."
                raise Stop(UNREACHABLE, f"The server cannot be reached: {reason}.", hint) from None
            if tries == 1:
                say(f"The server does not answer ({reason}); trying again for {self.patience:.0f} s.")
            time.sleep(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE)

    def target(self, tries: int) -> Target:
        """Return where to send; a context that becomes unreadable between two tries is being rewritten."""
        try:
            return self.where()
        except Stop as stop:
            if tries == 1:
                raise
            raise Gone(stop.lines[0]) from None


def given(**fields: object) -> dict[str, object]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def new_key() -> str:
    """Return a random UUID (version 4) in hex, without spending the time to import uuid."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return raw.hex()


def patience() -> float:
    """Return for how many seconds a call is retried."""
    text = os.environ.get("STEROIDS_RETRY_SECONDS") or str(RETRY_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise Stop(USAGE, "STEROIDS_RETRY_SECONDS must be a number of seconds from 0 to 86400.")
    return seconds


def exchange(target: Target, request: Request, left: float) -> Reply:
    """Try once and return the reply's JSON. Redirects are never followed.

    Raises Gone if the fault may pass, Stop if not.
    """
    scheme, host, port, prefix = parts_of(target.url) or ("http", "", None, "")
    timeout = max(SHORTEST_TIMEOUT, min(LONGEST_TIMEOUT, left / 2))
    headers = {"Authorization": f"Bearer {target.token}", **request.headers}
    try:
        status, location, raw = (over_tls if scheme == "https" else in_the_clear)(
            host, port, timeout, request, prefix + request.path, headers
        )
    except NotHTTP:
        raise Stop(REFUSED, f"{target.url} does not answer in HTTP: this is not our server.") from None
    except (ConnectionError, TimeoutError) as error:
        raise Gone(why(error)) from None
    except OSError as error:
        if is_certificate_fault(error):
            raise Stop(UNREACHABLE, f"The connection to {target.url} is not safe: {clean(error)}.") from None
        raise Gone(why(error)) from None
    if len(raw) > MAX_REPLY:
        raise Stop(REFUSED, f"{target.url} answers with more than {MAX_REPLY} bytes.")
    if status in RESTARTING:
        raise Gone(f"it answered {status}")
    if request.is_binary and status == 200:
        return {"data": raw}
    return judged(target, status, raw, location)


def over_tls(
    host: str, port: int | None, timeout: float, request: Request, path: str, headers: dict[str, str]
) -> Answer:
    """Return the status, the URL of a redirect and the body. Raises OSError, Gone and NotHTTP."""
    import http.client

    connection = http.client.HTTPSConnection(host, port, timeout=timeout)
    try:
        connection.request(request.method, path, request.body, headers)
        response = connection.getresponse()
        raw = response.read(MAX_REPLY + 1)
        if response.length and len(raw) <= MAX_REPLY:
            raise Gone(CUT)
        return response.status, response.getheader("Location"), raw
    except http.client.IncompleteRead:
        raise Gone(CUT) from None
    except ConnectionError:
        raise
    except http.client.HTTPException:
        raise NotHTTP from None
    finally:
        connection.close()


def in_the_clear(
    host: str, port: int | None, timeout: float, request: Request, path: str, headers: dict[str, str]
) -> Answer:
    """Return the same without http.client, whose modules for mail and encryption cost a third of a call.

    It asks in HTTP/1.0, so the server answers in one piece and closes the connection.
    """
    import socket

    name = f"[{host}]" if ":" in host else host
    lines = [f"{request.method} {path} HTTP/1.0", f"Host: {name}" + (f":{port}" if port else "")]
    body = request.body or b""
    if request.body is not None:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{header}: {value}" for header, value in headers.items()]
    where: Any = host.encode("ascii"), port or 80  # for a text Python loads what other alphabets need
    with socket.create_connection(where, timeout) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        with wire.makefile("rb") as answer:
            return read_answer(answer)


def read_answer(answer: BinaryIO) -> Answer:
    """Read an HTTP answer. Raises OSError, Gone if it was cut off, and NotHTTP if it is none."""
    first = answer.readline(MAX_LINE)
    if not first:
        raise Gone("remote end closed connection without response")
    known = re.fullmatch(rb"HTTP/1\.[0-9] ([2-5][0-9][0-9])(?: [^\r\n]*)?\r?\n", first)
    if not known:
        raise NotHTTP
    headers: dict[str, str] = {}
    while (one := answer.readline(MAX_LINE)) not in (b"\r\n", b"\n"):
        if not one.endswith(b"\n") or len(headers) > MAX_HEADERS:
            raise Gone(CUT) if len(one) < MAX_LINE and len(headers) <= MAX_HEADERS else NotHTTP
        header, _, value = one.decode("latin-1").partition(":")
        headers[header.lower()] = value.strip()
    status, length = int(known[1]), headers.get("content-length", "")
    if "transfer-encoding" in headers:
        raise NotHTTP
    most = min(int(length), MAX_REPLY + 1) if length.isascii() and length.isdigit() else MAX_REPLY + 1
    raw = answer.read(0 if status == NO_CONTENT else most)
    if length and status != NO_CONTENT and len(raw) < most:
        raise Gone(CUT)
    return status, headers.get("location"), raw


def why(error: Exception) -> str:
    """Return a short reason for a failed try."""
    if isinstance(error, TimeoutError):
        return "timed out"
    return line(getattr(error, "strerror", None) or error).lower() or type(error).__name__


def is_certificate_fault(error: OSError) -> bool:
    """Whether another try would fail in the same way; ssl is loaded only if https is in use."""
    ssl = sys.modules.get("ssl")
    return ssl is not None and isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)


def judged(target: Target, status: int, raw: bytes, location: str | None) -> Reply:
    """Return the JSON of a good answer. Raises Gone if an earlier try is still going on, otherwise Stop."""
    try:
        reply = json.loads(raw) if raw or status != 204 else {}
    except (ValueError, RecursionError):
        reply = None
    if 200 <= status < 300 and isinstance(reply, dict):
        return reply
    if status < 400 or not isinstance(reply, dict):
        fault = f"{target.url} answered {status}, not in our JSON: this is not our server."
        hint = f"It sends to {line(location)}; is that the address?" if location else "Check the address."
        raise Stop(REFUSED, fault, hint)
    if reply.get("code") == "in_flight":
        raise Gone("it is still busy with an earlier try")
    raise refusal(status, reply)


def refusal(status: int, reply: Reply) -> Stop:
    """Return the Stop that repeats the server's refusal in its own words."""
    lines = [label(reply.get("message") or reply.get("detail") or f"The server answered {status}.")]
    if reply.get("hint"):
        lines.append(line(reply["hint"]))
    details = reply.get("details")
    lines += [f"  {detail(item)}" for item in (details if isinstance(details, list) else [])]
    if reply.get("code") != "several_open":
        return Stop(REFUSED, *lines, reply=reply)
    still_open = reply.get("open")
    lines += [f"  {open_item(item)}" for item in (still_open if isinstance(still_open, list) else [])]
    return Stop(USAGE, *lines, reply=reply)


def detail(item: Any) -> str:
    """Return one line of an error's details."""
    if isinstance(item, dict) and "reason" in item:
        place = f"line {line(item['line'])}" if item.get("line") else line(item.get("field", ""))
        return (place and f"{place}: ") + line(item["reason"])
    return label(item)


def open_item(item: Any) -> str:
    """Return one line of the open conflicts; it begins with the code that `--conflict` takes."""
    if not isinstance(item, dict):
        return line(item)
    texts = (item.get(key) for key in ("code", "ref", "severity", "question", "title"))
    return "  ".join(line(text) for text in texts if text)


def get_rows(api: Api, path: str, **query: object) -> Reply:
    """Return a list with its further pages, up to 500 rows, as one reply."""
    reply = api.get(path, **query)
    rows = check_rows(reply)
    followed: set[str] = set()
    following = reply.get("next")
    while following and len(rows) < MAX_ROWS and following not in followed:
        followed.add(following)
        page = api.get(own_path(following))
        rows += check_rows(page)
        following = page.get("next")
    if len(rows) > MAX_ROWS or following:
        say(f"Only the first {MAX_ROWS} rows are shown; narrow the list down.")
    return {**reply, "next": following, "results": rows[:MAX_ROWS]}


def check_rows(page: Reply) -> list[Reply]:
    """Return the rows of one page. Raises Stop if it is not a list of ours."""
    rows = page.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Stop(REFUSED, "The answer is not a list of ours: this is not our server.")
    return rows


def own_path(address: object) -> str:
    """Return the path of a page's URL. Its host is ignored: the token goes only to the server we know."""
    _, found, rest = str(address).partition(API)
    if not found or not rest.isascii() or not rest.isprintable() or " " in rest:
        raise Stop(REFUSED, "The address of the next page is malformed: this is not our server.")
    return API + rest


# --- Commands on tasks ---


def path_of(kind: str, ref: str, verb: str = "") -> str:
    """Return the path of a thing, or of something to do with it."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", ref):
        raise Stop(USAGE, f"'{line(ref)}' is not an id, such as demo-3, D-7 or C-9.")
    return f"{API}{kind}/{ref}/" + (f"{verb}/" if verb else "")


def task_path(args: argparse.Namespace, api: Api, verb: str = "") -> str:
    """Return the path of the named task, or else of the run's task."""
    ref = args.ref
    if ref is None and os.environ.get("STEROIDS_CONTEXT"):
        ref = api.where().task
    if not ref:
        raise Stop(USAGE, "Name the task, such as demo-3: only in a run it may be left out.")
    return path_of("tasks", ref, verb)


def lists(path: str) -> Run:
    """Return what lists things, as the command's options narrow them down."""
    return lambda args, api: get_rows(api, f"{API}{path}/", **said(args))


def shows(kind: str) -> Run:
    """Return what asks for the thing that the command names."""
    return lambda args, api: api.get(path_of(kind, args.ref))


def sends(verb: str, kind: str = "tasks") -> Run:
    """Return what sends the command's options to a verb of the thing that it names, or of the run's task."""

    def run(args: argparse.Namespace, api: Api) -> Reply:
        path = task_path(args, api, verb) if kind == "tasks" else path_of(kind, args.ref, verb)
        return api.post(path, **said(args))

    return run


def said(args: argparse.Namespace) -> dict[str, object]:
    """Return the options that were given, under the names by which the API takes them. Raises Stop."""
    told = {name: value for name, value in vars(args).items() if name not in OURS and value is not False}
    return {name: value.content() if isinstance(value, Named) else value for name, value in told.items()}


class Named(str):
    """What may name a file that is to be sent in its place; it is read only once everything else fits."""

    __slots__ = ()

    def content(self) -> str | Reply | None:
        """Return the text itself, or that of the file it names; a single word must name a file."""
        if not self or len(self) > MAX_PATH or "\n" in self:
            return self
        return read_small(self) if os.path.isfile(self) or not re.search(r"\s", self.strip()) else self


class HandedIn(Named):
    """The name of a file to hand in: its text is sent, or an object if the name ends in .json."""

    __slots__ = ()

    def content(self) -> str | Reply | None:
        """Return what the file holds. Raises Stop."""
        text = read_small(self)
        if not self.lower().endswith(".json"):
            return text
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise Stop(USAGE, f"{self} is not JSON: line {error.lineno}: {error.msg}.") from None
        except (ValueError, RecursionError):
            raise Stop(USAGE, f"{self} is not JSON that can be read.") from None
        if not isinstance(data, dict):
            raise Stop(USAGE, f"{self} must hold a JSON object.")
        return data


def tasks_show(args: argparse.Namespace, api: Api) -> Reply:
    """Return one task with its findings."""
    return api.get(task_path(args, api))


def tasks_add(args: argparse.Namespace, api: Api) -> Reply:
    """Add a task as the last of its project."""
    return api.post(f"{API}tasks/", **said(args))


def tasks_update(args: argparse.Namespace, api: Api) -> Reply:
    """Change the task's status in one call; `review` hands in a commit instead."""
    if args.status == "review":
        return tasks_submit(args, api)
    if args.response is not None or args.sha is not None:
        raise Stop(USAGE, "--response and --sha belong to `--status review`.")
    return sends("status")(args, api)


def tasks_submit(args: argparse.Namespace, api: Api) -> Reply:
    """Hand in a commit, with the answers to the last review."""
    path = task_path(args, api, "submit")
    fields = said(args)
    sha = head() if args.sha is None else args.sha
    if os.environ.get("STEROIDS_CONTEXT"):
        where = api.where()
        check_descent(where.base, sha)
        if where.pulled:
            bring(api, where.pulled, sha)
    fields.pop("status", None)
    return api.post(path, **{**fields, "sha": sha})


def tasks_reject(args: argparse.Namespace, api: Api) -> Reply:
    """Reject what was handed in, as its reviewer, and say why."""
    path = task_path(args, api, "reject")
    if not args.review and not (args.notes or "").strip():
        raise Stop(USAGE, "Say why: give --notes or --file.")
    return api.post(path, **said(args))


def show_verdict(args: argparse.Namespace, reply: Reply) -> str:
    """Return what became of a review, or how it is read."""
    return "\n".join([clean(reply.get("message") or ""), *map(line, reply.get("read_as") or [])])


def head(folder: str = ".") -> str:
    """Return the commit to hand in: HEAD. Raises Stop if there are uncommitted changes or no commit."""
    said = git("status", "--porcelain=v2", "--branch", "--untracked-files=no", folder=folder).splitlines()
    changes = [each for each in said if each[0] in WORDS_BEFORE_PATH]
    if changes:
        names = ", ".join(map(changed_path, changes[:5])) + (", ..." if len(changes) > 5 else "")
        hint = "Commit them first, or name a commit with --sha."
        raise Stop(USAGE, f"There are uncommitted changes: {names}.", hint)
    commit = next((each.removeprefix(OID) for each in said if each.startswith(OID)), "")
    if not re.fullmatch("[0-9a-f]+", commit):
        raise Stop(USAGE, "There is no commit yet to hand in.", "Commit first, or name a commit with --sha.")
    return commit


def changed_path(change: str) -> str:
    """Return the path in a line of `git status --porcelain=v2`."""
    words = WORDS_BEFORE_PATH[change[0]]
    return line(change.split(" ", words)[-1].partition("\t")[0])


def git(*words: str, folder: str = ".") -> str:
    """Return the output of a git command in a folder as text. Raises Stop."""
    return git_bytes(*words, folder=folder).decode(errors="replace")


def git_bytes(*words: str, folder: str = ".") -> bytes:
    """Return the output of a git command in a folder. Raises Stop."""
    import subprocess

    try:
        argv = ["git", "--no-optional-locks", "-C", folder, *words]
        done = subprocess.run(argv, capture_output=True, check=False)
    except OSError:
        raise Stop(USAGE, "git cannot be run.", "Name the commit with --sha.") from None
    if done.returncode:
        reason = line(done.stderr.decode(errors="replace"))
        raise Stop(USAGE, f"git knows no commit to hand in here: {reason}", "Name the commit with --sha.")
    return done.stdout


def opinion(args: argparse.Namespace, api: Api) -> Reply:
    """Give an opinion: a judge says who is right, a mediator what both could live with."""
    given = [args.verdict is not None, args.proposal is not None, args.none]
    if sum(given) != 1:
        raise Stop(USAGE, "Say one thing.", "A judge gives --verdict; a mediator --proposal, or --none.")
    return sends("opinion")(args, api)


# --- Commands on hosts, which run the agents ---


def runners_turn(args: argparse.Namespace, api: Api) -> Reply:
    """Let the named host, or all, take new runs again or take none."""
    if bool(args.name) == args.all:
        raise Stop(USAGE, "Name a host, or say --all.", "`steroids runners status` lists them.")
    names = (
        [args.name]
        if args.name
        else [str(row.get("name")) for row in get_rows(api, f"{API}hosts/")["results"]]
    )
    replies = [api.post(path_of("hosts", name, args.verb)) for name in names]
    told = "\n".join(str(reply.get("message") or "") for reply in replies)
    return {
        "message": told or "There is no host yet: start one with `manage.py run_orchestrator`.",
        "hosts": replies,
    }


# --- Commands on oneself ---


def whoami(args: argparse.Namespace, api: Api) -> Reply:
    """Return whose token this is."""
    return api.get(f"{API}me/")


def login(args: argparse.Namespace, api: Api) -> Reply:
    """Check URL and token with the server, once, and only then keep them."""
    if not parts_of(args.url):
        raise Stop(USAGE, "--url must look like https://host or http://host:port.")
    token = read_small(args.token_file).strip() if args.token_file else ask_token()
    if not is_token(token):
        raise Stop(USAGE, "The token is empty or holds spaces or other letters that no token has.")
    target = Target(args.url.rstrip("/"), token)
    me = Api(lambda: target, 0).get(f"{API}me/")
    if args.url.startswith("http:") and not is_local(args.url):
        say("Warning: without https everyone on the way can read the token.")
    write_private(login_path(), json.dumps({"url": target.url, "token": token}) + "\n")
    return me


def is_local(url: str) -> bool:
    """Whether the URL is on this machine."""
    _, host, _, _ = parts_of(url) or ("", "", None, "")
    return host in ("localhost", "::1") or host.startswith("127.")


def ask_token() -> str:
    """Read the token from stdin; it is not shown if that is a terminal."""
    if sys.stdin and sys.stdin.isatty():
        import getpass

        try:
            return getpass.getpass("Personal token: ").strip()
        except EOFError:
            return ""
    return sys.stdin.buffer.readline(4096).decode("ascii", "replace").strip() if sys.stdin else ""


# --- An agent elsewhere: claim work, have a command do it ---


def pull(args: argparse.Namespace, api: Api) -> Reply:
    """Claim work and have the command do it, once or again and again until interrupted."""
    import shlex
    import signal

    words = shlex.split(args.command)
    if not words:
        raise Stop(USAGE, "--command is empty; name the program that does the work.")
    if os.environ.get("STEROIDS_CONTEXT"):
        raise Stop(USAGE, "A run does not claim further work; unset STEROIDS_CONTEXT.")
    signal.signal(signal.SIGTERM, interrupt)
    done = 0
    while True:
        try:
            claimed = api.post(f"{API}pull/claim/")
            if claimed:
                say("Claimed run " + ", ".join(label(claimed.get(key)) for key in ("run", "task", "role")))
                result = PulledRun(args, api.where().url, claimed).carry_out(words)
                say(result)
                done += 1
                if not args.loop:
                    return {"message": result, "runs": done}
                continue
        except Stop as stop:
            if not args.loop or stop.code != UNREACHABLE:
                raise
            report(stop)
        if not args.loop:
            return {"message": "There is nothing to do.", "runs": done}
        time.sleep(args.every)


def interrupt(*_: object) -> None:
    """Handle SIGTERM like Ctrl-C: the command is ended and its work given back."""
    raise KeyboardInterrupt


class PulledRun:
    """One claimed run, in a folder of its own with its clone, prompt, context and log."""

    def __init__(self, args: argparse.Namespace, url: str, claimed: Reply) -> None:
        token, addresses = claimed.get("token"), claimed.get("addresses")
        if not isinstance(token, str) or not is_token(token) or not isinstance(addresses, dict):
            raise Stop(REFUSED, "The claim was not answered as ours is: this is not our server.")
        self.args = args
        self.pk = claimed.get("run")
        self.task = str(claimed.get("task") or "")
        self.addresses = {name: own_path(address) for name, address in addresses.items()}
        self.beat_seconds = max(float(claimed.get("beat_seconds") or 10), 0.05)
        self.lease_seconds = max(float(claimed.get("lease_seconds") or 60), 0.2)
        self.target = Target(url, token, self.task)
        self.api = Api(lambda: self.target, patience())
        self.folder = os.path.join(os.path.abspath(args.folder or pull_folder()), f"run-{int(self.pk or 0)}")
        self.clone = os.path.join(self.folder, "clone")
        self.log = os.path.join(self.folder, "output.log")
        self.sent, self.base, self.is_kept = 0, "", bool(args.keep)

    def carry_out(self, words: list[str]) -> str:
        """Carry the claimed run out, and return in a sentence what came of it.

        The folder is removed unless it is to be kept or holds commits that came too late. Raises Stop.
        """
        import shutil

        try:
            work = self.wait_for_work()
            self.make_folder(work)
            return self.supervise(self.start(words, work))
        except KeyboardInterrupt:
            self.release("It was interrupted on its own machine.", failed=False)
            raise
        except (Stop, OSError) as error:
            reason = error.lines[0] if isinstance(error, Stop) else f"{error}"
            self.release(reason, failed=True)
            raise Stop(REFUSED, f"Run {self.pk} on {line(self.task)} did not come about: {reason}") from None
        finally:
            if not self.is_kept:
                shutil.rmtree(self.folder, ignore_errors=True)

    def wait_for_work(self) -> Reply:
        """Return the prompt and where to begin, once a host has prepared them. Raises Stop if none does."""
        end = time.monotonic() + max(self.lease_seconds, 60)
        while time.monotonic() < end:
            work = self.api.get(self.addresses["work"])
            if work.get("ready"):
                return work
            time.sleep(min(1.0, self.beat_seconds))
        raise Stop(UNREACHABLE, "No host of the server prepared the work in time.")

    def make_folder(self, work: Reply) -> None:
        """Make the clone at the base, the prompt, and the context with which `steroids` finds the run."""
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, mode=0o700)
        repository, base = str(work["repo_url"]), str(work["base_sha"])
        self.base = base
        branch = str(work.get("target_branch") or "main")
        if repository.startswith("-") or not re.fullmatch("[0-9a-f]{40,64}", base):
            raise Stop(REFUSED, "The work names no repository or no commit: this is not our server.")
        run_git(
            self.folder, "clone", "--quiet", "--no-checkout", f"--branch={branch}", "--", repository, "clone"
        )
        if work.get("base_bundle"):
            bundle = os.path.join(self.folder, "base.bundle")
            with open(bundle, "wb") as file:
                file.write(self.api.download(self.addresses["base"]))
            run_git(self.clone, "fetch", "--quiet", "--", bundle, str(work["base_ref"]))
        where = ["-B", str(work["branch"])] if work.get("branch") else ["--detach"]
        run_git(self.clone, "checkout", "--quiet", *where, base)
        write_private(os.path.join(self.folder, "prompt.md"), str(work["prompt"]))
        pulled = {"bundle": self.addresses["bundle"], "base": base, "ref": work["hand_in_ref"]}
        context = {
            "url": self.target.url, "token": self.target.token, "task": self.task,
            "role": work.get("role"), "run": self.pk, "pulled": pulled,
        }  # fmt: skip
        write_private(os.path.join(self.folder, "context.json"), json.dumps(context))

    def start(self, words: list[str], work: Reply) -> Any:
        """Start the command in the clone, with `steroids` in its PATH and without our own token."""
        import shlex
        import subprocess

        prompt = os.path.join(self.folder, "prompt.md")
        launcher = os.path.join(self.folder, "bin", "steroids")
        own = shlex.quote(os.path.abspath(__file__))
        write_private(launcher, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {own} "$@"\n')
        os.chmod(launcher, 0o700)
        hidden = ("STEROIDS_URL", "STEROIDS_TOKEN_FILE")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {
            "PATH": os.path.dirname(launcher) + os.pathsep + os.environ.get("PATH", os.defpath),
            "STEROIDS_CONTEXT": os.path.join(self.folder, "context.json"),
            "STEROIDS_RUN": str(self.pk),
        }
        argv = [word.replace("{prompt}", prompt).replace("{clone}", self.clone) for word in words]
        with open(prompt, "rb") as stdin, open(self.log, "wb") as output:
            try:
                return subprocess.Popen(
                    argv, cwd=self.clone, env=environment, stdin=stdin, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise Stop(USAGE, f"{line(argv[0])} cannot be started: {error.strerror}.") from None

    def supervise(self, process: Any) -> str:
        """Beat while the command works; end it if the server says so or has not answered for too long.

        Returns a sentence about how the run ended.
        """
        import subprocess

        heard = time.monotonic()
        told = ""
        try:
            while True:
                try:
                    code = process.wait(self.beat_seconds)
                    break
                except subprocess.TimeoutExpired:
                    pass
                try:
                    answer = self.beat()
                    heard = time.monotonic()
                    told = line(answer.get("reason")) if answer.get("stop") else ""
                except Stop as stop:
                    if stop.code != UNREACHABLE:
                        if (stop.reply or {}).get("code") != "handed_in":
                            told = stop.lines[0]
                        else:
                            code = self.wait_a_moment(process)
                            break
                    elif time.monotonic() - heard > self.lease_seconds * 0.75:
                        told = "The server was not heard of for too long; somebody else may have the work."
                if told:
                    end_process(process)
                    return self.release(told, failed=False) + self.keep_commits()
        finally:
            end_process(process)
        return self.ended(code)

    def wait_a_moment(self, process: Any) -> int:
        """Give the command ten seconds to end after its hand-in. Returns its exit code, 0 if it is ended."""
        import subprocess

        try:
            return int(process.wait(10))
        except subprocess.TimeoutExpired:
            end_process(process)
            return 0

    def beat(self) -> Reply:
        """Tell the server that the run is alive, with what the command printed since the last beat.

        One beat carries PULL_LOG bytes at most; the next one goes on from there.
        """
        with open(self.log, "rb") as file:
            file.seek(self.sent)
            fresh = file.read(PULL_LOG)
        request = Api(lambda: self.target, min(self.beat_seconds, 5.0))
        answer = request.post(self.addresses["beat"], log=fresh.decode("utf-8", "replace") or None)
        self.sent += len(fresh)
        return answer

    def send_rest(self) -> None:
        """Send the rest of the log, but no more than the server keeps of a run. Raises Stop."""
        self.beat()
        while self.sent < min(os.path.getsize(self.log), PULL_LOG_MAX):
            self.beat()

    def ended(self, code: int) -> str:
        """Say whether the command, which has ended, handed in; give the work back if it did not."""
        try:
            self.send_rest()
        except Stop as stop:
            if (stop.reply or {}).get("code") == "handed_in":
                return f"Run {self.pk}: {line(self.task)} is handed in."
            return f"Run {self.pk}: {stop.lines[0]}{self.keep_commits()}"
        return self.release(f"The command ended with {code} and handed in nothing.", failed=True)

    def keep_commits(self) -> str:
        """Keep the folder if it holds commits, which nobody else has and nobody takes any more; say so."""
        try:
            if git("rev-parse", "HEAD", folder=self.clone).strip() == self.base:
                return ""
        except Stop:
            return ""
        self.is_kept = True
        return f" Its commits are left in {self.clone}."

    def release(self, reason: str, *, failed: bool) -> str:
        """Give the work back; if that is not possible, the lease will run out."""
        try:
            self.api.post(self.addresses["release"], reason=line(reason)[:300], failed=failed)
        except Stop:
            return f"Run {self.pk}: {line(reason)}"
        return f"Run {self.pk} is given back. {line(reason)}"


def pull_folder() -> str:
    """Return the folder for the clones of claimed runs."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.cache")
    return os.path.join(home, "steroids", "pull")


def end_process(process: Any) -> None:
    """End the command and what it started, first with SIGTERM, then with SIGKILL."""
    import signal
    import subprocess

    for kind, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, kind)
            process.wait(seconds)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


def run_git(folder: str, *words: str) -> None:
    """Run a git command on this machine. Raises Stop if it fails."""
    import subprocess

    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file"}
    try:
        done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=False)
    except OSError:
        raise Stop(USAGE, "git cannot be run here.") from None
    if done.returncode:
        raise Stop(REFUSED, f"git {words[0]} failed: {line(done.stderr.decode(errors='replace'))[-300:]}")


def check_descent(base: str, sha: str, folder: str = ".") -> None:
    """Raise Stop if the commit leaves out the one at which the run began, as an amended one does.

    It would come back in any case, after the run has ended. Where git cannot tell, a host looks later.
    """
    if not base or stands_on(base, sha, folder):
        return
    try:
        is_left_out = git("rev-list", "--max-count=1", base, f"^{sha}", "--", folder=folder)
    except Stop:
        return
    if is_left_out:
        why = f"{line(sha)[:12]} leaves out {line(base)[:12]}, where you began: it was amended or moved."
        back = f"`git reset --soft {line(base)[:12]} && git commit`"
        raise Stop(USAGE, why, f"Put your files on top of it instead: {back}, then repeat this command.")


def stands_on(base: str, sha: str, folder: str) -> bool:
    """Whether a commit that was just made stands on another, as its own objects tell without git's help."""
    import zlib

    for _ in range(COMMITS_READ):
        if sha == base:
            return True
        try:
            with open(os.path.join(folder, ".git", "objects", sha[:2], sha[2:]), "rb") as file:
                said = zlib.decompress(file.read())
        except (OSError, ValueError, zlib.error):
            return False
        parent = re.match(rb"commit \d+\0tree [0-9a-f]+\nparent ([0-9a-f]+)\n", said)
        if parent is None:
            return False
        sha = parent[1].decode()
    return False


def bring(api: Api, pulled: Reply, sha: str, folder: str = ".") -> None:
    """Send the commits that only this machine has, so that the server can take the submission."""
    if sha == pulled.get("base"):
        return
    if not re.fullmatch("[0-9a-f]{40,64}", sha):
        raise Stop(USAGE, "Name the commit by its full SHA: its commits are sent along.")
    ref = str(pulled["ref"])
    git_bytes("update-ref", ref, sha, folder=folder)
    data = git_bytes("bundle", "create", "--quiet", "-", ref, f"^{pulled['base']}", folder=folder)
    if len(data) > MAX_BUNDLE:
        raise Stop(USAGE, f"Your commits are {len(data)} bytes; at most {MAX_BUNDLE} (8 MiB) are taken.")
    api.upload(own_path(pulled["bundle"]), data)


# --- What is shown ---


def show_message(args: argparse.Namespace, reply: Reply) -> str:
    """Return the message of the reply to a verb."""
    return clean(reply.get("message") or "")


def show_login(args: argparse.Namespace, reply: Reply) -> str:
    """Say who is logged in."""
    return f"Logged in as {label(reply.get('name'))}."


def show_fields(args: argparse.Namespace, reply: Reply) -> str:
    """Return every short field of the reply."""
    return "\n".join(fields(reply))


def show_projects(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of projects and, below it, what keeps any of them from work."""
    rows = [{**row, "tasks": counted(row.get("tasks"))} for row in reply["results"]]
    cells = columns(rows, "slug", "status", "tasks", "target_branch", "repository")
    told = [table(("PROJECT", "STATUS", "TASKS", "BRANCH", "REPOSITORY"), cells, "No projects.")]
    told += [f"{label(row.get('slug'))} waits: {line(row['trouble'])}" for row in rows if row.get("trouble")]
    return "\n".join(told)


def counted(tasks: object) -> str:
    """Return the counts of tasks by status, such as "2 completed, 1 in progress"."""
    if not isinstance(tasks, dict) or not tasks:
        return "none"
    return ", ".join(
        f"{line(number)} {line(name).replace('_', ' ')}" for name, number in sorted(tasks.items())
    )


def show_tasks(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of tasks."""
    rows = [{**row, "title": shorten(row.get("title"))} for row in reply["results"]]
    if any(row.get("where") for row in rows):
        cells = columns(rows, "ref", "title", "status", "round", "where")
        return table(("ID", "TITLE", "STATUS", "ROUND", "STAGE"), cells)
    cells = columns(rows, "ref", "title", "status", "round")
    return table(("ID", "TITLE", "STATUS", "ROUND"), cells, "No tasks.")


def show_runners(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of hosts."""
    cells = columns(reply["results"], "name", "state", "seen_at", "runs", "slots", "isolation", "labels")
    nothing = "No host has reported yet. Start one on its machine: manage.py run_orchestrator"
    return table(("HOST", "STATE", "SEEN", "RUNS", "SLOTS", "ISOLATION", "LABELS"), cells, nothing)


def fields(thing: Reply, without: Iterable[str] = ()) -> list[str]:
    """Return `Name: value` for every short field, aligned; empty values and lists of objects are left out."""
    short = {
        name: label(value)
        for name, value in thing.items()
        if name not in without and value not in (None, "", []) and not has_objects(value)
    }
    names = {name: line(name).replace("_", " ").capitalize() + ":" for name in short}
    width = max(map(len, names.values()), default=0)
    return [f"{names[name].ljust(width)}  {text}" for name, text in short.items()]


def has_objects(value: object) -> bool:
    """Whether this is a list that does not fit on a line."""
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def objects(value: object) -> list[Reply]:
    """Return the objects in a list that the server sent."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def show_task(args: argparse.Namespace, reply: Reply) -> str:
    """Return a task as text: heading, why it does not move, fields, findings, body."""
    lines = [f"{label(reply.get('ref'))}  {line(reply.get('title') or '')}".rstrip()]
    if reply.get("waiting"):
        lines.append(f"Waiting: {label(reply['waiting'])}")
    lines += ["", *fields(reply, without=("ref", "title", "stage", "waiting", "findings", "body"))]
    if findings := objects(reply.get("findings")):
        cells = columns(findings, "code", "severity", "title")
        lines += ["", "Findings:", table(("CODE", "SEVERITY", "TITLE"), cells)]
    if reply.get("body"):
        lines += ["", "Body:", *quote(reply["body"])]
    return "\n".join(lines)


def show_disputes(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of disputes."""
    rows = [{**row, "task": task_title(row), "reason": short_reason(row)} for row in reply["results"]]
    if args.stale and rows:
        return show_stale(rows, reply.get("count"), reply.get("stale_after_days"))
    cells = columns(rows, "ref", "task", "status", "reason")
    return table(("ID", "TASK", "STATUS", "REASON"), cells, "No disputes.")


def show_stale(rows: list[Reply], count: object, days: object) -> str:
    """Return the disputes that have been open for too long, below a warning."""
    number = count if isinstance(count, int) else len(rows)
    have = "dispute has" if number == 1 else "disputes have"
    cells = columns(rows, "ref", "task", "days_open")
    bound = (
        f"> {line(days)} day{'s' * (days != 1)}"
        if isinstance(days, int)
        else "longer than their projects bear"
    )
    return (
        f"WARNING: {number} {have} been open for {bound}\n\n"
        f"{table(('ID', 'TASK', 'DAYS OPEN'), cells)}\n\n"
        "Run `steroids dispute show <id>` for details."
    )


def task_title(row: Reply) -> str:
    """Return the title of a dispute's task; a card about a whole project has no task."""
    task = row.get("task")
    return shorten(task.get("title") or task.get("ref") or "-") if isinstance(task, dict) else label(task)


def short_reason(row: Reply) -> str:
    """Return a reason as the list of disputes names it."""
    reason = row.get("reason")
    return SHORT_REASONS.get(reason, shorten(reason)) if isinstance(reason, str) else label(reason)


def show_dispute(args: argparse.Namespace, reply: Reply) -> str:
    """Return a dispute as text: heading and fields, then each conflict with both positions."""
    heading = (reply.get("ref"), reply.get("status"), reply.get("severity"))
    lines = ["  ".join(line(part) for part in heading if part)]
    told = {"task": reply.get("task"), **reply, "blocks_project": reply.get("blocks_project") or None}
    lines += fields(told, without=("ref", "status", "severity", "conflicts", "message"))
    for conflict in objects(reply.get("conflicts")):
        lines += ["", *show_conflict(conflict)]
    return "\n".join(lines)


def show_conflict(conflict: Reply) -> list[str]:
    """Return a conflict as the server presents it, with both positions verbatim, then what was decided."""
    heading = (conflict.get(key) for key in ("ref", "code", "kind", "severity", "status"))
    lines = ["  ".join(line(part) for part in heading if part)]
    if conflict.get("presentation"):
        lines += ["", *clean(conflict["presentation"]).split("\n")]
    for each in objects(conflict.get("opinions")):
        lines += ["", *show_opinion(each)]
    options = objects(conflict.get("options"))
    if options and conflict.get("status") == "open":
        words = ", ".join(f"{line(each.get('letter'))} or {line(each.get('key'))}" for each in options)
        lines += [
            "",
            f"Rule with `steroids dispute resolve {line(conflict.get('ref'))} --decision WORD`: {words}.",
        ]
    if isinstance(conflict.get("decision"), dict):
        lines += ["", *show_decision(conflict["decision"])]
    return lines


def show_opinion(opinion: Reply) -> list[str]:
    """Return what a judge or a mediator was asked and said; it rules on nothing."""
    kind, state, verdict = (line(opinion.get(key) or "") for key in ("kind", "state", "verdict"))
    who = ", ".join(line(opinion[key]) for key in ("by_agent", "by_model", "by_vendor") if opinion.get(key))
    said = verdict.upper() if verdict else state
    lines = [
        f"Opinion of the {kind}: {said}" + (f", by {who}, {label(opinion.get('given_at'))}" if who else "")
    ]
    if state == "late":
        lines[0] += "; it came too late and has no effect"
    for key in ("text", "trade_off", "reasons"):
        if opinion.get(key) and not (key == "text" and opinion.get("text") == opinion.get("reasons")):
            lines += quote(opinion[key])
    return lines


def show_decision(decision: Reply) -> list[str]:
    """Return who ruled what, when and why."""
    chosen = "  ".join(line(decision[key]) for key in ("letter", "option") if decision.get(key))
    lines = [f"Decision: {chosen or '-'}, by {label(decision.get('by'))}, {label(decision.get('at'))}"]
    if decision.get("text"):
        lines += quote(decision["text"])
    if decision.get("rationale"):
        lines += ["Rationale:", *quote(decision["rationale"])]
    if cited := objects(decision.get("cites")):
        lines += [f"As ruled on {', '.join(label(each.get('dispute')) for each in cited)}."]
    return lines


def show_branches(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of disputed work that was pushed and, below it, what the remote refused."""
    rows = [{**row, "sha": str(row.get("sha") or "")[:12]} for row in reply["results"]]
    cells = columns(rows, "task", "task_status", "sha", "branch")
    told = [table(("TASK", "STATUS", "COMMIT", "BRANCH"), cells, "No disputed work was pushed.")]
    told += [f"{label(row.get('task'))}: {line(row['problem'])}" for row in rows if row.get("problem")]
    return "\n".join(told)


def show_amendments(args: argparse.Namespace, reply: Reply) -> str:
    """Return the table of amendments."""
    cells = columns(reply["results"], "id", "conflict", "path", "stands", "task")
    return table(("ID", "CONFLICT", "SPECIFICATION", "STATE", "TASK"), cells, "No amendments.")


def show_amendment(args: argparse.Namespace, reply: Reply) -> str:
    """Return an amendment as text: fields, words, diff, and how to settle what waits."""
    lines = fields(reply, without=("words", "diff", "message"))
    if reply.get("words"):
        lines += ["", "Words:", *quote(reply["words"])]
    if reply.get("diff"):
        lines += ["", "Diff:", *quote(reply["diff"])]
    if reply.get("state") == "drafted":
        named = f"{label(reply.get('id'))} --seen {label(reply.get('version'))}"
        lines += ["", f"`steroids amendment approve {named}` lands exactly this; `drop {named}` refuses it."]
    return "\n".join(lines)


# --- The command line ---


def status(text: str) -> str:
    """Return a status as the server writes it."""
    return text.lower().replace("-", "_")


def count(text: str) -> int:
    """Parse a number from 1."""
    if not re.fullmatch("[1-9][0-9]{0,11}", text):
        raise argparse.ArgumentTypeError(f"'{line(text)}' is not a number from 1")
    return int(text)


def from_zero(text: str) -> int:
    """Parse the number of a round or a version; 0 is before the first round, and the first version."""
    return 0 if text == "0" else count(text)


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]+)?", text) or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"'{line(text)}' is not a number of seconds")
    return float(text)


class Help(argparse.HelpFormatter):
    """Help of a fixed width: argparse makes one for every argument, and asking the terminal is slow."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=79)


class Word(argparse.ArgumentParser):
    """The parser of one word of the command, with what may follow it.

    It is set up when it is first used: setting up all of them takes as long as everything else that a call
    does.
    """

    def __init__(self, takes: Sequence[Takes], **told: Any) -> None:
        self.takes, self.told = takes, told

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments after this word, which was given; set the parser up first."""
        super().__init__(formatter_class=Help, allow_abbrev=False, **self.told)
        for take in self.takes:
            take(self)
        return super().parse_known_args(args, namespace)


def option(*names: str, **told: Any) -> Takes:
    """Return what adds an argument to a command, in the terms of `add_argument`."""
    return lambda word: word.add_argument(*names, **told)


def words(name: str, **told: Any) -> Takes:
    """Return what adds an option that takes a text, or the file that holds it."""
    return option(name, metavar="FILE|TEXT", type=Named, **told)


def either(*options: Takes, required: bool = False) -> Takes:
    """Return what adds these options to a command, of which at most one may be given."""

    def take(word: argparse.ArgumentParser) -> None:
        group = word.add_mutually_exclusive_group(required=required)
        for each in options:
            each(group)

    return take


def fixed(**values: object) -> Takes:
    """Return what sets values that the command implies by its name."""
    return lambda word: word.set_defaults(**values)


class Group:
    """A word with commands below it. Each has `--json`, what it does and how its reply is shown."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.prog = parser.prog
        self.commands = parser.add_subparsers(
            prog=parser.prog, metavar="COMMAND", required=True, parser_class=Word
        )

    def word(self, name: str, summary: str, *takes: Takes, aliases: Sequence[str] = ()) -> None:
        """Add a word."""
        self.commands.add_parser(
            name, aliases=aliases, help=summary, description=summary, prog=f"{self.prog} {name}", takes=takes
        )

    def group(
        self, name: str, summary: str, fill: Callable[[Group], None], aliases: Sequence[str] = ()
    ) -> None:
        """Add a word with commands below it."""
        self.word(name, summary, lambda word: fill(Group(word)), aliases=aliases)

    def add(
        self,
        name: str,
        summary: str,
        run: Run,
        *takes: Takes,
        show: Callable[[argparse.Namespace, Reply], str] = show_message,
        ref: str = "",
    ) -> None:
        """Add a command.

        `ref` is "task" if a run may leave the argument REF out; any other text is the help of a REF that is
        required.
        """
        json_too = option(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print the raw reply"
        )
        if ref == "task":
            takes = (
                option("ref", metavar="REF", nargs="?", help="the task; in a run the run's, if left out"),
                *takes,
            )
        elif ref:
            takes = (option("ref", metavar="REF", help=ref), *takes)
        self.word(name, summary, fixed(run=run, show=show), json_too, *takes)


MODEL = option("--model", metavar="M", help="a label")
CONFLICT = option("--conflict", metavar="CODE", help="only this one of several")
TRADE_OFF = words("--trade-off", help="what each side gives up")
SEVERITY = option("--severity", type=str.lower, choices=SEVERITIES)
PROJECT = option("--project", metavar="P")
SUBMISSION = (  # what comes with a commit
    option("--response", metavar="FILE", type=HandedIn, help=ANSWERS),
    option("--sha", metavar="SHA", help="the commit, if not HEAD"),
    option("--notes", metavar="N"),
    MODEL,
)
VERDICT = (
    option("--notes", metavar="N"),
    option(
        "--file", dest="review", metavar="F", type=HandedIn,
        help="the review: Markdown, perhaps with YAML front matter, or .json",
    ),
    option("--check", action="store_true", help="only say how the review is read"),
    option("--confirm", action="store_true", help="take it as it is read"),
    MODEL,
)  # fmt: skip
OPINION = (  # of a judge or a mediator
    option("--verdict", type=str.upper, choices=VERDICTS, help="a judge: who is right"),
    words("--reasons", help="why, with the places that show it"),
    words("--proposal", help="a mediator: what both could live with"),
    TRADE_OFF,
    option("--none", action="store_true", help="a mediator: there is no middle way"),
    MODEL,
)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    summary = "Hand in work, look after tasks and disputes."
    codes = "exit codes: 0 done, 1 refused, 2 wrong usage, 3 server not reached, 4 not logged in"
    parser = argparse.ArgumentParser(
        prog="steroids", description=summary, epilog=codes, formatter_class=Help, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"steroids {VERSION}")
    parser.add_argument("--json", action="store_true", help="print the raw reply")
    add_commands(Group(parser))
    return parser


def add_commands(top: Group) -> None:
    """Add the commands of `steroids ...`."""
    top.group("tasks", "what is to be done", add_tasks, aliases=("task",))
    top.add(
        "projects", "list the projects that you may see", lists("projects"),
        option("--status", metavar="S", type=status),
        option("--search", metavar="X"),
        show=show_projects,
    )  # fmt: skip
    top.group("dispute", "who is right", add_disputes)
    top.group("amendment", "what rulings add to a specification", add_amendments)
    top.group("runners", "the hosts that run agents", add_runners)
    top.add(
        "rollback", "take rounds of a task back", sends("rollback"),
        option(
            "--to", dest="to_round", required=True, metavar="N", type=from_zero,
            help="the last that stays; 0: none",
        ),
        words("--reason", required=True, help="the next prompt says so"),
        ref="task",
    )  # fmt: skip
    top.add(
        "comment", "say something on a task", sends("comment"),
        option("--body", required=True, metavar="TEXT"),
        option("--target", metavar="T", help="what it is about, such as a finding's code"),
        option("--parent", metavar="N", type=count, help="the comment that is answered"),
        either(
            option("--back", action="store_true", help="object: send the task one stage back"),
            option("--disagree", action="store_true", help="answer an objection: it is wrong"),
            option("--resolve", action="store_true", help="answer an objection: it is right"),
        ),
        ref="task",
    )  # fmt: skip
    top.add(
        "blocked", "say that the task cannot go on without a human", sends("blocked"),
        option("--reason", required=True, metavar="TEXT"),
        ref="task",
    )  # fmt: skip
    top.add(
        "escalate", "pass a task that you cannot do on to specialists", sends("escalate"),
        option("--reason", choices=ESCALATIONS, default="unknown", help="what it takes"),
        option("--notes", required=True, metavar="TEXT", help="what you tried and where it failed"),
        ref="task",
    )  # fmt: skip
    top.add("opinion", "give the opinion that you were asked for", opinion, *OPINION, ref="task")
    top.add(
        "login", "keep an address and a personal token (read from stdin)", login,
        option("--url", required=True),
        option("--token-file", metavar="FILE", help="read the token from here"),
        show=show_login,
    )  # fmt: skip
    top.add("whoami", "who the server takes you for", whoami, show=show_fields)
    top.add(
        "pull", "claim work for this machine and have a command do it", pull,
        option("--command", required=True, metavar="CMD", help="gets the prompt on stdin and as {prompt}"),
        either(
            option("--once", action="store_true", help="one run, if there is one"),
            option("--loop", action="store_true", help="run after run, until interrupted"),
            required=True,
        ),
        option("--every", metavar="SECONDS", type=seconds, default=10.0, help="between questions"),
        option("--folder", metavar="DIR", help="where the clones go (default: your cache folder)"),
        option("--keep", action="store_true", help="leave each run's folder where it is"),
    )  # fmt: skip


def add_tasks(tasks: Group) -> None:
    """Add the commands of `steroids tasks ...`."""
    tasks.add(
        "list", "list tasks", lists("tasks"),
        PROJECT,
        option("--status", metavar="S", type=status),
        option("--search", metavar="X"),
        show=show_tasks,
    )  # fmt: skip
    tasks.add("show", "show a task and why it does not move", tasks_show, show=show_task, ref="task")
    tasks.add(
        "update", "change a status; `review` hands in HEAD", tasks_update,
        option("--status", required=True, metavar="STATUS", type=status),
        *SUBMISSION,
        ref="task",
    )  # fmt: skip
    tasks.add(
        "add", "add a task to a project that you maintain", tasks_add,
        option("title", metavar="TITLE"),
        option("--project", required=True, metavar="P"),
        words("--body", help="what is asked"),
        option("--section", metavar="S", help="made where it is not there; default: the first one"),
        SEVERITY,
        option("--source", metavar="PATH", help="the specification, such as docs/SPEC.md#login"),
        option("--tag", dest="tags", metavar="T", action="append"),
        option(
            "--after", dest="depends_on", metavar="REF", action="append",
            help="a task that is to be done first",
        ),
    )  # fmt: skip
    tasks.add("submit", "hand in HEAD for review", tasks_submit, *SUBMISSION, ref="task")
    tasks.add(
        "approve", "approve what was handed in", sends("approve"), *VERDICT, show=show_verdict, ref="task"
    )
    tasks.add("reject", "send it back; say why", tasks_reject, *VERDICT, show=show_verdict, ref="task")


def add_runners(runners: Group) -> None:
    """Add the commands of `steroids runners ...`."""
    runners.add("status", "every host and what it is at", lists("hosts"), show=show_runners)
    for name, summary, verb in (
        ("start", "let a host take new runs again", "resume"),
        ("stop", "let a host take no new runs; what is under way goes on to its end", "drain"),
    ):
        runners.add(
            name, summary, runners_turn,
            fixed(verb=verb),
            option("name", metavar="HOST", nargs="?"),
            option("--all", action="store_true", help="every host"),
        )  # fmt: skip


def add_disputes(disputes: Group) -> None:
    """Add the commands of `steroids dispute ...`."""
    disputes.add(
        "create", "put a disagreement before a human", sends("dispute"),
        option("--reason", required=True, metavar="R", help="such as security_concern"),
        option("--position", metavar="P", help="what you hold, and why"),
        option("--finding", metavar="CODE", help="the finding it is about"),
        SEVERITY,
        MODEL,
        ref="task",
    )  # fmt: skip
    disputes.add(
        "log", "record a minor disagreement; nothing waits for it", sends("log"),
        option("--minor", action="store_true", default=True, help="always so"),
        option("--notes", required=True, metavar="N"),
        MODEL,
        ref="task",
    )  # fmt: skip
    disputes.add(
        "list", "list disputes", lists("disputes"),
        option("--status", choices=("open", "resolved")),
        option(
            "--stale", action="store_const", const=1, help="only those that are open for too long"
        ),
        option("--recent", metavar="N", type=count, help="only the last N"),
        show=show_disputes,
    )  # fmt: skip
    disputes.add(
        "show", "show a dispute with both positions", shows("disputes"), show=show_dispute, ref="the dispute"
    )
    # The server knows which words a card takes: they are in its options.
    rulings = "an option of the card, by its letter or its word, such as A, reviewer, 1 or retry: see `show`"
    disputes.add(
        "resolve", "rule on a dispute", sends("resolve", "disputes"),
        option("--decision", required=True, metavar="WORD", help=rulings),
        option("--notes", metavar="N", help="why; for custom also the ruling itself"),
        option("--text", metavar="T", help="the ruling itself, in your own words"),
        option("--cites", metavar="REF", help="the precedents that it follows, such as C-9 or C-9,D-7"),
        either(CONFLICT, option("--all", action="store_true", help="all that are open")),
        ref="a dispute, conflict or task",
    )  # fmt: skip
    ref = "a dispute or conflict"
    disputes.add(
        "synthesis", "propose a middle way: option C", sends("synthesis", "disputes"),
        words("--text", required=True, help="what both sides could live with"),
        TRADE_OFF,
        option("--covers-both", action="store_true", help="it meets both concerns"),
        CONFLICT,
        ref=ref,
    )  # fmt: skip
    disputes.add("ask-judge", "ask a judge for an opinion", sends("ask-judge", "disputes"), CONFLICT, ref=ref)
    amend = "have a ruling drafted into the specification"
    disputes.add("amend", amend, sends("amend", "disputes"), CONFLICT, ref=ref)
    listed = "list disputed work that was pushed"
    disputes.add("branches", listed, lists("disputed-work"), PROJECT, show=show_branches)


def add_amendments(amendments: Group) -> None:
    """Add the commands of `steroids amendment ...`."""
    amendments.add(
        "list", "list amendments", lists("amendments"),
        PROJECT,
        option("--state", choices=AMENDMENT_STATES),
        show=show_amendments,
    )  # fmt: skip
    shown = "show what an amendment adds, and where"
    amendments.add("show", shown, shows("amendments"), show=show_amendment, ref="its number")
    seen = option(
        "--seen", dest="version", required=True, metavar="V", type=from_zero,
        help="its version, as `show` told it",
    )  # fmt: skip
    added = words("--words", required=True, help="what is to be added")
    for verb, summary, takes in (
        ("approve", "land exactly what you looked at", (seen,)),
        ("drop", "refuse it: nothing comes of it", (seen,)),
        ("reword", "have it drafted again, with other words", (seen, added)),
    ):
        amendments.add(verb, summary, sends(verb, "amendments"), *takes, ref="its number")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = build_parser().parse_args(argv)
    try:
        reply = args.run(args, Api(find_target, patience()))
        put(as_json(reply) if args.json else args.show(args, reply))
        return DONE
    except Stop as stop:
        try:
            if args.json and stop.reply is not None:
                put(as_json(stop.reply))
        except Stop:
            pass  # the sentence below says why it was refused
        report(stop)
        return stop.code
    except KeyboardInterrupt:
        say("Interrupted.")
        return INTERRUPTED


def as_json(reply: Reply) -> str:
    """Return the reply as JSON in ASCII, so that nothing in it reaches a terminal unescaped."""
    return json.dumps(reply, indent=2).replace("\x7f", "\\u007f")


def put(text: str) -> None:
    """Print the text; a reader that has gone away is no fault of the command. Raises Stop on a full disk."""
    if not text:
        return
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            fault = f"The server has answered, but the answer cannot be written: {error.strerror}."
            raise Stop(USAGE, fault, "What was asked for is done.") from None


def report(stop: Stop) -> None:
    """Print the sentence, then the hint and the details, each on its own line."""
    first, *others = stop.lines
    say(clean(first))
    for text in others:
        print(clean(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
