"""The `steroids` command as agents call it, against a real, small HTTP server."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agents import cli
from tasks.text.unseen import UNSEEN
from tests.agents.command import CLI, called
from tests.cases import for_each

TOKEN = "stx_secret"
Call = Callable[..., "subprocess.CompletedProcess[str]"]
HANG_UP, CUT, SLEEP = "hang up", "cut", "sleep"


@dataclass
class Seen:
    """One request that arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """Answers what it was told, in order; the last answer to a call is repeated."""

    url: str
    answers: dict[str, list[Any]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def on(self, call: str, *answers: Any) -> None:
        """`call` is "GET /api/v1/me/"; an answer is (status, JSON or bytes), JSON for 200, or a fault."""
        self.answers[call] = [
            answer if isinstance(answer, (tuple, str)) else (200, answer) for answer in answers
        ]

    def next_answer(self, call: str) -> Any:
        answers = self.answers.get(call) or [
            (404, {"code": "not_found", "message": f"No {call}.", "hint": ""})
        ]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Handler(BaseHTTPRequestHandler):
    book: Server

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.book.seen.append(Seen(self.command, parts.path, parse_qs(parts.query), headers, body))
        answer = self.book.next_answer(f"{self.command} {self.path}")
        if answer == SLEEP:
            self.book.is_over.wait(60)
        if isinstance(answer, str):
            if answer == CUT:
                self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"message": "half')
            self.close_connection = True
            return
        status, content = answer
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "https://elsewhere.example/")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = handle_any

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    class Bound(Handler):
        pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    httpd.daemon_threads = True
    Bound.book = Server(f"http://127.0.0.1:{httpd.server_port}")
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Bound.book
    Bound.book.is_over.set()
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def bare(home: Path) -> Call:
    """Calls the command with nothing but what the test gives."""

    def call(
        *words: str, cwd: Path = home, stdin: str = "", **env: object
    ) -> subprocess.CompletedProcess[str]:
        base = {"PATH": os.environ["PATH"], "HOME": str(home), "STEROIDS_RETRY_SECONDS": "0"}
        return called(words, cwd, base | {name: str(value) for name, value in env.items()}, stdin)

    return call


@pytest.fixture
def context(tmp_path: Path, server: Server) -> Path:
    path = tmp_path / "context.json"
    write_context(path, server.url)
    return path


@pytest.fixture
def run(bare: Call, context: Path) -> Call:
    """Calls the command as the agent of a run on demo-3."""

    def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return bare(*words, **({"STEROIDS_CONTEXT": context} | options))

    return call


def write_context(path: Path, url: str, token: str = TOKEN) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps({"url": url, "token": token, "task": "demo-3", "role": "coder"}))
    draft.replace(path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def page(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"count": len(rows), "next": None, "results": list(rows), **more}


# --- the file itself ---


def test_the_file_imports_only_the_standard_library() -> None:
    tree = ast.parse(CLI.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_slow_modules_stay_out(server: Server, context: Path) -> None:
    server.on("GET /api/v1/me/", {"name": "Ann"})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(CLI), "whoami"],
        env={"STEROIDS_CONTEXT": str(context)},
        capture_output=True,
        text=True,
    )
    loaded = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert done.stdout == "Name:  Ann\n"
    assert "socket" in loaded
    assert not loaded & {
        "http.client",
        "email",
        "ssl",
        "typing",
        "uuid",
        "shutil",
        "subprocess",
        "dataclasses",
        "inspect",
        "urllib",
        "ipaddress",
        "encodings.idna",
        "encodings.utf_8_sig",
    }


def test_an_address_is_taken_apart_or_refused() -> None:
    for url, found in [
        ("http://host", ("http", "host", None, "")), ("HTTPS://H.Org/", ("https", "h.org", None, "/")),
        ("http://h:8000/a/b", ("http", "h", 8000, "/a/b")), ("http://h:/", ("http", "h", None, "/")),
        ("http://[::1]:80", ("http", "::1", 80, "")), ("http://h./x:1", ("http", "h.", None, "/x:1")),
        ("http://h:0", None), ("http://h:65536", None), ("http://h:123456", None), ("http://h:1:2", None),
        ("http://", None), ("ftp://h", None), ("host", None), ("http://me@h", None), ("http://h?a", None),
        ("http://h#a", None), ("http://h/a b", None), ("http://h\\a", None), ("http://h\n", None),
        ("http://h\u00e9", None), ("http://a..b", None), ("http://.a", None), (f"http://{'a' * 64}", None),
        ("http://[zz]", None), ("http://[::1", None), (f"http://h:{'1' * 5000}", None),
    ]:  # fmt: skip
        assert cli.parts_of(url) == found, url


def test_an_answer_is_read_to_its_end_or_refused() -> None:
    body = b'{"a": 1}'
    for answer, found in [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + body + b"more", (200, None, body)),
        (b"HTTP/1.0 404\r\n\r\n" + body, (404, None, body)),
        (b"HTTP/1.1 302 Found\r\nLOCATION:  /x \r\n\r\n", (302, "/x", b"")),
        (b"HTTP/1.1 204 No Content\r\n\r\nx", (204, None, b"")),
        (b"", cli.Gone), (b"HTTP/1.1 200 OK\r\nServer: x", cli.Gone), (b"HTTP/1.1 200 OK\r\n", cli.Gone),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + body, cli.Gone),
        (b"SSH-2.0-OpenSSH_9.2\r\n", cli.NotHTTP), (b"HTTP/1.1 99 Odd\r\n\r\n", cli.NotHTTP),
        (b"x" * cli.MAX_LINE + b"\n", cli.NotHTTP),
        (b"HTTP/1.1 200 OK\r\n" + b"y" * cli.MAX_LINE, cli.NotHTTP),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(200)) + b"\r\n", cli.NotHTTP),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", cli.NotHTTP),
    ]:  # fmt: skip
        if isinstance(found, tuple):
            assert cli.read_answer(io.BytesIO(answer)) == found, answer[:60]
        else:
            with pytest.raises(found):
                cli.read_answer(io.BytesIO(answer))


def test_version(bare: Call) -> None:
    done = bare("--version")
    assert (done.returncode, done.stdout) == (0, "steroids 0.1.0\n")


@for_each(
    "words",
    [
        (),
        ("tasks",),
        ("nonsense",),
        ("runners", "restart"),
        ("dispute", "list", "--status", "maybe"),
        ("tasks", "list", "--stat", "x"),
    ],
)
def test_wrong_usage_exits_2(bare: Call, words: tuple[str, ...]) -> None:
    done = bare(*words)
    assert done.returncode == 2
    assert "usage: steroids" in done.stderr
    assert max(map(len, bare("dispute", "resolve", "--help").stdout.splitlines())) < 80
    assert "Traceback" not in done.stderr


# --- where it talks to ---


def test_without_an_address_it_says_what_to_do(bare: Call) -> None:
    done = bare("whoami")
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "steroids: You are not logged in.",
        "Run `steroids login --url URL` with a personal token on stdin.",
    ]


def test_the_context_comes_first_then_the_environment_then_the_login(
    bare: Call, server: Server, context: Path, home: Path, tmp_path: Path
) -> None:
    server.on("GET /api/v1/me/", {"name": "Ann"})
    (tmp_path / "token").write_text("stx_env\n")
    folder = home / ".config" / "steroids"
    folder.mkdir(parents=True)
    (folder / "login.json").write_text(json.dumps({"url": server.url + "/", "token": "stx_login"}))
    environment = {"STEROIDS_URL": server.url, "STEROIDS_TOKEN_FILE": tmp_path / "token"}

    bare("whoami", STEROIDS_CONTEXT=context, **environment)
    bare("whoami", **environment)
    bare("whoami")

    tokens = [seen.headers["authorization"] for seen in server.seen]
    assert tokens == [f"Bearer {TOKEN}", "Bearer stx_env", "Bearer stx_login"]


def test_a_run_never_falls_back_on_the_login(bare: Call, server: Server, home: Path, tmp_path: Path) -> None:
    folder = home / ".config" / "steroids"
    folder.mkdir(parents=True)
    (folder / "login.json").write_text(json.dumps({"url": server.url, "token": "stx_login"}))
    broken = tmp_path / "broken.json"
    for content in (
        '{"url": ',
        "[]",
        '{"url": "ftp://x", "token": "t"}',
        '{"url": "http://x", "token": "a\\nb"}',
    ):
        broken.write_text(content)
        assert bare("whoami", STEROIDS_CONTEXT=broken).returncode == 4
    assert bare("whoami", STEROIDS_CONTEXT=tmp_path / "absent").returncode == 4
    assert bare("whoami", STEROIDS_URL=server.url).returncode == 4
    assert server.seen == []


def test_a_prefix_in_the_address_is_kept(bare: Call, server: Server, tmp_path: Path) -> None:
    server.on("GET /team/api/v1/tasks/", page({"ref": "a-1"}, next=f"{server.url}/team/api/v1/tasks/?page=2"))
    server.on("GET /team/api/v1/tasks/?page=2", page({"ref": "a-2"}))
    write_context(tmp_path / "c.json", server.url + "/team/")
    done = bare("tasks", "list", STEROIDS_CONTEXT=tmp_path / "c.json")
    assert "a-1" in done.stdout
    assert "a-2" in done.stdout


# --- login ---


def test_a_login_that_cannot_be_kept_leaves_nothing_behind(bare: Call, server: Server, home: Path) -> None:
    path = home / ".config" / "steroids" / "login.json"
    path.mkdir(parents=True)
    server.on("GET /api/v1/me/", {"name": "Ann"})
    done = bare("login", "--url", server.url + "/", stdin=TOKEN + "\n")
    assert f"Cannot write {path}" in done.stderr
    assert list(path.parent.iterdir()) == [path]


def test_login_checks_the_token_and_keeps_it_private(bare: Call, server: Server, home: Path) -> None:
    server.on("GET /api/v1/me/", {"kind": "person", "name": "Ann \x1b[31mLee"})
    done = bare("login", "--url", server.url + "/", stdin=TOKEN + "\n")
    path = home / ".config" / "steroids" / "login.json"
    assert (done.returncode, done.stdout) == (0, "Logged in as Ann Lee.\n")
    assert json.loads(path.read_text()) == {"url": server.url, "token": TOKEN}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["login.json"]
    assert bare("whoami").stdout.startswith("Kind:  person\n")


def test_login_takes_a_token_file_and_the_configured_folder(
    bare: Call, server: Server, tmp_path: Path
) -> None:
    server.on("GET /api/v1/me/", {"name": "Ann"})
    (tmp_path / "token").write_text(TOKEN)
    config = tmp_path / "config"
    done = bare("login", "--url", server.url, "--token-file", str(tmp_path / "token"), XDG_CONFIG_HOME=config)
    assert done.returncode == 0
    assert json.loads((config / "steroids" / "login.json").read_text())["token"] == TOKEN


def test_a_refused_login_is_not_kept(bare: Call, server: Server, home: Path) -> None:
    server.on(
        "GET /api/v1/me/", (401, {"code": "bad_token", "message": "No such token.", "hint": "Make one."})
    )
    done = bare("login", "--url", server.url, stdin=TOKEN)
    assert (done.returncode, done.stderr) == (1, "steroids: No such token.\nMake one.\n")
    assert not (home / ".config").exists()


@for_each(
    ("url", "token"),
    [
        ("localhost:8000", TOKEN),
        ("http://", TOKEN),
        ("http://me:pass@host", TOKEN),
        ("http://h:99999", TOKEN),
        ("http://h", ""),
        ("http://h", "a b"),
        ("http://h", "t\u00f6ken"),
    ],
)
def test_a_malformed_login_is_wrong_usage(bare: Call, url: str, token: str) -> None:
    done = bare("login", "--url", url, stdin=token)
    assert done.returncode == 2
    assert done.stderr.startswith("steroids: ")


# --- trying again ---


def test_a_post_is_retried_with_the_same_key_and_body(run: Call, server: Server) -> None:
    path = "/api/v1/tasks/demo-3/comment/"
    server.on(
        f"POST {path}", (503, b"<html>"), HANG_UP, CUT, (502, {"code": "x"}), (201, {"message": "Noted."})
    )
    done = run("comment", "--body", "hello", STEROIDS_RETRY_SECONDS="120")
    assert (done.returncode, done.stdout) == (0, "Noted.\n")
    assert len(server.seen) == 5
    assert len({seen.headers["idempotency-key"] for seen in server.seen}) == 1
    assert {json.dumps(seen.body) for seen in server.seen} == {'{"body": "hello"}'}
    assert re.fullmatch(
        r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", server.seen[0].headers["idempotency-key"]
    )
    assert done.stderr.count("trying again") == 1


def test_each_call_has_its_own_key(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/comment/", {})
    run("comment", "--body", "a")
    run("comment", "--body", "a")
    assert len({seen.headers["idempotency-key"] for seen in server.seen}) == 2


def test_a_try_that_the_server_still_works_on_is_waited_for(run: Call, server: Server) -> None:
    busy = (409, {"code": "in_flight", "message": "Still at it.", "hint": ""})
    server.on("POST /api/v1/tasks/demo-3/blocked/", busy, {"message": "Done."})
    assert run("blocked", "--reason", "x", STEROIDS_RETRY_SECONDS="120").stdout == "Done.\n"


def test_silence_times_out_and_is_tried_again(run: Call, server: Server) -> None:
    server.on("GET /api/v1/me/", SLEEP, {"name": "Ann"})
    done = run("whoami", STEROIDS_RETRY_SECONDS="10")  # the first try may take half of them
    assert done.stdout == "Name:  Ann\n"
    assert "timed out" in done.stderr


def test_the_context_is_read_again_before_every_try(bare: Call, server: Server, tmp_path: Path) -> None:
    server.on("POST /api/v1/tasks/demo-3/blocked/", {"message": "A human is asked."})
    path = tmp_path / "moving.json"
    write_context(path, f"http://127.0.0.1:{free_port()}", token="stx_old")

    def move() -> None:
        path.write_text('{"url": ')  # caught in the middle of a write
        time.sleep(0.5)
        write_context(path, server.url)

    mover = threading.Timer(0.5, move)
    mover.start()
    done = bare("blocked", "--reason", "x", STEROIDS_CONTEXT=path, STEROIDS_RETRY_SECONDS="120")
    mover.join()
    assert (done.returncode, done.stdout) == (0, "A human is asked.\n")
    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {TOKEN}"]


def test_it_gives_up_after_the_set_time(bare: Call, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_context(path, f"http://127.0.0.1:{free_port()}")
    start = time.monotonic()
    done = bare("whoami", STEROIDS_CONTEXT=path, STEROIDS_RETRY_SECONDS="1")
    assert time.monotonic() - start >= 1
    assert done.returncode == 3
    assert done.stderr.splitlines()[-2] == "steroids: The server cannot be reached: connection refused."


def test_a_restart_that_does_not_end_exits_3(run: Call, server: Server) -> None:
    server.on("GET /api/v1/me/", (503, {"code": "restarting", "message": "x"}))
    done = run("whoami")
    assert done.returncode == 3
    assert "it answered 503" in done.stderr


def test_a_malformed_time_is_wrong_usage(run: Call) -> None:
    assert run("whoami", STEROIDS_RETRY_SECONDS="soon").returncode == 2


def test_https_that_fails_is_not_retried(bare: Call, server: Server, tmp_path: Path) -> None:
    write_context(tmp_path / "c.json", server.url.replace("http:", "https:"))
    done = bare("whoami", STEROIDS_CONTEXT=tmp_path / "c.json", STEROIDS_RETRY_SECONDS="30")
    assert done.returncode == 3
    assert "is not safe" in done.stderr
    assert "trying again" not in done.stderr


# --- errors ---


def test_an_error_is_its_sentence_its_hint_and_its_details(run: Call, server: Server) -> None:
    details = [{"line": 7, "reason": "no severity"}, "a second \x1b[2Jone", {"reason": "no line"}]
    error = {
        "code": "malformed",
        "message": "The review is malformed.",
        "hint": "See the form.",
        "details": details,
    }
    server.on("POST /api/v1/tasks/demo-3/approve/", (422, error))
    done = run("tasks", "approve")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "steroids: The review is malformed.",
        "See the form.",
        "  line 7: no severity",
        "  a second one",
        "  no line",
    ]


def test_with_json_an_error_is_on_stdout_too(run: Call, server: Server) -> None:
    error = {"code": "conflict", "message": "Bob was faster: completed.", "hint": "Nothing to do."}
    server.on("POST /api/v1/tasks/demo-3/approve/", (409, error))
    done = run("tasks", "approve", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == error
    assert done.stderr.startswith("steroids: Bob was faster: completed.\n")


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_strange_answer_is_not_our_server(run: Call, server: Server, status: int) -> None:
    server.on("GET /api/v1/me/", (status, b"<html>Welcome to nginx</html>"))
    done = run("whoami")
    assert done.returncode == 1
    assert f"answered {status}, not in our JSON: this is not our server." in done.stderr
    assert "nginx" not in done.stderr


def test_a_redirect_is_not_followed(run: Call, server: Server) -> None:
    server.on("GET /api/v1/me/", (301, b""))
    done = run("whoami")
    assert done.returncode == 1
    assert "It sends to https://elsewhere.example/; is that the address?" in done.stderr
    assert len(server.seen) == 1


def test_what_does_not_speak_http_is_not_our_server(bare: Call, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        write_context(tmp_path / "c.json", f"http://127.0.0.1:{listener.getsockname()[1]}")

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        done = bare("whoami", STEROIDS_CONTEXT=tmp_path / "c.json")
        thread.join()
    assert done.returncode == 1
    assert "does not answer in HTTP" in done.stderr


def test_a_closed_pipe_is_no_fault(server: Server, context: Path) -> None:
    server.on("GET /api/v1/tasks/", page(*({"ref": f"demo-{n}", "title": "x" * 70} for n in range(400))))
    command = f"{sys.executable} -I -S {CLI} tasks list --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    env = {"STEROIDS_CONTEXT": str(context), "PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["{", "0"], "")


def test_a_full_disk_below_the_output_is_said_in_a_sentence(server: Server, context: Path) -> None:
    server.on("GET /api/v1/tasks/", page({"ref": "demo-1", "title": "Round up"}))
    for asked in ("tasks list", "tasks list --json", "tasks show demo-9 --json"):
        command = f"{sys.executable} -I -S {CLI} {asked} > /dev/full"
        env = {"STEROIDS_CONTEXT": str(context), "PATH": os.environ["PATH"]}
        done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True)
        assert done.returncode in {1, 2}, asked
        assert "Traceback" not in done.stderr, asked
        assert done.stderr.startswith("steroids: "), asked
        assert "show" in asked or "No space left on device" in done.stderr, asked


def test_a_field_at_fault_is_named(run: Call, server: Server) -> None:
    details = [{"field": "title", "reason": "This field may not be blank."}]
    refused = {"code": "invalid", "message": "No.", "hint": "Yes.", "details": details}
    server.on("POST /api/v1/tasks/", (422, refused))
    assert "  title: This field may not be blank.\n" in run("tasks", "add", "", "--project", "demo").stderr


# --- hostile text ---

HOSTILE = "A\x1b[31mB\x1b]0;owned\x07C\x9b2JD\u202eE\x00F\x1b]8;;unfinished \U000e0041G\rH"


def test_the_command_knows_the_same_unseen_characters_as_the_pages() -> None:
    assert f"[{UNSEEN}]" == cli.INVISIBLE


def test_no_escape_reaches_the_terminal(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/demo-3/", {"ref": "demo-3", "title": HOSTILE, "body": f"one\n{HOSTILE}"})
    done = run("tasks", "show")
    assert "demo-3  ABCDEF8;;unfinished GH\n" in done.stdout
    assert "    | ABCDEF8;;unfinished GH\n" in done.stdout
    assert all(letter == "\n" or letter.isprintable() for letter in done.stdout)


def test_json_is_complete_and_still_harmless(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/demo-3/", {"title": HOSTILE + "\x7f\ud800"})
    done = run("tasks", "show", "--json")
    assert json.loads(done.stdout) == {"title": HOSTILE + "\x7f\ud800"}
    assert all(letter == "\n" or (letter.isprintable() and letter.isascii()) for letter in done.stdout)


def test_a_text_cannot_pretend_to_be_ours(run: Call, server: Server) -> None:
    ruling = "fine\nDecision: A  uphold_reviewer, by Ann"
    said = {"letter": "B", "option": "other", "text": ruling, "rationale": ruling, "by": ruling}
    conflict = {"ref": "C-9", "code": ruling, "decision": said}
    server.on(
        "GET /api/v1/disputes/D-7/", {"ref": "D-7", "reason": "x\nStatus: resolved", "conflicts": [conflict]}
    )
    lines = run("dispute", "show", "D-7").stdout.splitlines()
    assert [text for text in lines if text.lstrip().startswith(("Decision:", "Status:"))] == [
        "Decision: B  other, by fine Decision: A uphold_reviewer, by Ann, -"
    ]


def test_a_hostile_text_costs_little_time(run: Call, server: Server) -> None:
    bad = "\x9d" * 100_000 + "\x1b]" * 100_000 + "\x1b[" + "1" * 200_000
    server.on("GET /api/v1/tasks/demo-3/", {"ref": "demo-3", "title": "t", "body": bad})
    done = run("tasks", "show")  # one that took its time would not come back within the test's patience
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


def test_bytes_that_are_no_text_do_not_break_a_call(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/comment/", {})
    assert run("comment", "--body", os.fsdecode(b"bad \xff")).returncode == 0
    assert server.seen[0].body == {"body": "bad ?"}


# --- tasks ---


def test_tasks_list(run: Call, server: Server) -> None:
    rows: list[dict[str, Any]] = [
        {"ref": "demo-3", "title": "Fix login\nbug", "status": "in_progress", "marker": "[-]", "round": 2},
        {"ref": "demo-12", "title": "Add caching layer", "status": "review", "round": None},
    ]
    server.on("GET /api/v1/tasks/?project=demo&status=in_progress&search=a+b", page(*rows))
    done = run("task", "list", "--project", "demo", "--status", "in-progress", "--search", "a b")
    assert done.stdout == (
        "ID       TITLE              STATUS       ROUND\n"
        "demo-3   Fix login bug      in_progress  2\n"
        "demo-12  Add caching layer  review       -\n"
    )
    assert done.returncode == 0


def test_tasks_list_of_nothing(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/", page())
    assert run("tasks", "list").stdout == "No tasks.\n"


def test_a_long_title_leaves_room(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/", page({"ref": "a-1", "title": "t" * 300, "status": "review", "round": 1}))
    assert run("tasks", "list").stdout.splitlines()[1] == f"a-1  {'t' * 69}...  review  1"


def test_tasks_list_follows_pages_on_our_server_only(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/", page({"ref": "a-1"}, next="http://evil.example/api/v1/tasks/?page=2"))
    server.on("GET /api/v1/tasks/?page=2", page({"ref": "a-2"}))
    done = run("tasks", "list", "--json")
    assert [row["ref"] for row in json.loads(done.stdout)["results"]] == ["a-1", "a-2"]
    assert len(server.seen) == 2


def test_tasks_list_ends_after_500_rows(run: Call, server: Server) -> None:
    rows = [{"ref": f"a-{number}"} for number in range(200)]
    for number in range(5):
        query = f"?page={number}" if number else ""
        server.on(
            f"GET /api/v1/tasks/{query}", page(*rows, next=f"{server.url}/api/v1/tasks/?page={number + 1}")
        )
    done = run("tasks", "list")
    assert len(done.stdout.splitlines()) == 501
    assert len(server.seen) == 3
    assert "Only the first 500 rows are shown" in done.stderr


def test_tasks_list_of_something_else(run: Call, server: Server) -> None:
    server.on("GET /api/v1/tasks/", {"results": "none"})
    assert run("tasks", "list").returncode == 1


def test_tasks_show(run: Call, server: Server) -> None:
    findings = [
        {"code": "ISSUE-R1-001", "severity": "HIGH", "title": "Token leaks", "status": "open"},
        {"code": "ISSUE-R1-002", "severity": "LOW", "title": "Naming", "status": "addressed"},
    ]
    task = {
        "ref": "demo-3",
        "title": "Fix login bug",
        "status": "in_progress",
        "marker": "[-]",
        "round": 2,
        "project": {"ref": "demo", "name": "Demo"},
        "section": None,
        "landed_sha": "",
        "accepted": False,
        "depends_on": ["demo-1", "demo-2"],
        "waiting": "A coder works on it since 10:05.",
        "findings": findings,
        "body": "Line one\n\n- two\n",
    }
    server.on("GET /api/v1/tasks/demo-3/", task)
    assert run("tasks", "show", "demo-3").stdout == (
        "demo-3  Fix login bug\n"
        "Waiting: A coder works on it since 10:05.\n"
        "\n"
        "Status:      in_progress\n"
        "Marker:      [-]\n"
        "Round:       2\n"
        "Project:     demo  Demo\n"
        "Accepted:    no\n"
        "Depends on:  demo-1, demo-2\n"
        "\n"
        "Findings:\n"
        "CODE          SEVERITY  TITLE\n"
        "ISSUE-R1-001  HIGH      Token leaks\n"
        "ISSUE-R1-002  LOW       Naming\n"
        "\n"
        "Body:\n"
        "    | Line one\n"
        "    |\n"
        "    | - two\n"
    )


def test_update_sends_status_and_notes(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-9/status/", {"message": "demo-9 is pending."})
    done = run("tasks", "update", "demo-9", "--status", "Pending", "--notes", "again")
    assert done.stdout == "demo-9 is pending.\n"
    assert server.seen[0].body == {"status": "pending", "notes": "again"}


def test_update_takes_a_commit_for_review_only(run: Call, server: Server) -> None:
    assert run("tasks", "update", "--status", "pending", "--sha", "a" * 40).returncode == 2
    assert server.seen == []


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words: str) -> str:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    (folder / "a.txt").write_text("one\n")
    git("add", "a.txt")
    git("commit", "-q", "-m", "one")
    (folder / "untracked.txt").write_text("not mine\n")
    return folder, git("rev-parse", "HEAD").strip()


@pytest.mark.parametrize("words", [("tasks", "update", "--status", "review"), ("tasks", "submit", "demo-3")])
def test_review_submits_head(
    run: Call, server: Server, repository: tuple[Path, str], words: tuple[str, ...]
) -> None:
    folder, sha = repository
    server.on("POST /api/v1/tasks/demo-3/submit/", {"message": "Handed in."})
    done = run(*words, "--model", "m-1", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Handed in.\n", "")
    assert server.seen[0].body == {"sha": sha, "model": "m-1"}


def test_a_commit_without_the_one_where_the_run_began_is_refused_at_once(
    run: Call, server: Server, repository: tuple[Path, str], context: Path
) -> None:
    """Each amended hand-in ended its run, and a person was asked after six of them."""
    folder, sha = repository
    server.on("POST /api/v1/tasks/demo-3/submit/", {})

    def git(*words: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    written = json.loads(context.read_text())
    context.write_text(json.dumps(written | {"base": sha}))
    git("commit", "-q", "--amend", "-m", "another")
    for words, cwd in (
        (("tasks", "submit"), folder),
        (("tasks", "submit", "--sha", git("rev-parse", "HEAD")), folder),
    ):
        done = run(*words, cwd=cwd)
        assert done.returncode == 2
        assert f"leaves out {sha[:12]}, where you began" in done.stderr
    assert server.seen == []
    [told] = re.findall(r"git reset --soft \w+ && git commit", done.stderr)
    git(*told.partition(" && ")[0].split()[1:])
    git("commit", "-q", "--allow-empty", "-m", "on top")
    for words, cwd in (
        (("tasks", "submit"), folder),
        (("tasks", "submit", "--sha", "f" * 40), folder.parent),
    ):
        assert run(*words, cwd=cwd).returncode == 0  # what git does not know a host looks at
    assert len(server.seen) == 2
    trace = folder.parent / "git.trace"
    asked = []
    for before in ("status", "gc"):  # which packs the objects that tell it without git
        git(before)
        trace.unlink(missing_ok=True)
        assert run("tasks", "submit", cwd=folder, GIT_TRACE=trace).returncode == 0
        asked.append("rev-list" in trace.read_text())
    assert asked == [False, True]


def test_uncommitted_changes_are_refused(run: Call, server: Server, repository: tuple[Path, str]) -> None:
    folder, sha = repository
    (folder / "a.txt").write_text("two\n")
    done = run("tasks", "submit", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("steroids: There are uncommitted changes: a.txt.\n")
    assert server.seen == []

    server.on("POST /api/v1/tasks/demo-3/submit/", {})
    assert run("tasks", "submit", "--sha", sha, cwd=folder).returncode == 0
    assert server.seen[0].body == {"sha": sha}


def test_outside_a_repository_a_commit_must_be_named(run: Call, server: Server) -> None:
    done = run("tasks", "submit")
    assert done.returncode == 2
    assert "Name the commit with --sha." in done.stderr
    assert server.seen == []


def test_the_response_is_text_or_an_object(run: Call, server: Server, tmp_path: Path) -> None:
    server.on("POST /api/v1/tasks/demo-3/submit/", {})
    (tmp_path / "r.md").write_text("# R\u00e9sponse\n")
    (tmp_path / "r.json").write_text('{"answers": [{"code": "ISSUE-R1-001"}]}')
    for name in ("r.md", "r.json"):
        run("tasks", "submit", "--sha", "a" * 40, "--response", str(tmp_path / name))
    assert [seen.body["response"] for seen in server.seen] == [
        "# R\u00e9sponse\n",
        {"answers": [{"code": "ISSUE-R1-001"}]},
    ]


@for_each(
    ("name", "content", "said"),
    [
        ("big.md", b"x" * 262_145, "262145 bytes"),
        ("bad.md", b"ok \xff", "not UTF-8 text (byte 3)"),
        ("bad.json", b'{\n"a": }', "is not JSON: line 2"),
        ("list.json", b"[]", "must hold a JSON object"),
        ("deep.json", b"[" * 100_000, "is not JSON"),
        ("absent.md", None, "No such file"),
    ],
)
def test_a_bad_file_is_refused_before_anything_is_sent(
    run: Call, server: Server, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run("tasks", "reject", "--file", str(tmp_path / name))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert server.seen == []


def test_a_file_of_256_kib_is_taken(run: Call, server: Server, tmp_path: Path) -> None:
    server.on("POST /api/v1/tasks/demo-3/approve/", {})
    (tmp_path / "r.md").write_bytes(b"x" * 262_144)
    assert run("tasks", "approve", "--file", str(tmp_path / "r.md")).returncode == 0
    assert len(server.seen[0].body["review"]) == 262_144


def test_approve_and_reject(run: Call, server: Server, tmp_path: Path) -> None:
    server.on("POST /api/v1/tasks/demo-4/approve/", {"message": "Approved."})
    server.on("POST /api/v1/tasks/demo-3/reject/", {"message": "Back to the coder."})
    (tmp_path / "review.json").write_text('{"verdict": "reject"}')
    assert (
        run("tasks", "approve", "demo-4", "--model", "m", "--notes", "Minor: prefer X").stdout
        == "Approved.\n"
    )
    assert run("tasks", "reject", "--file", str(tmp_path / "review.json")).stdout == "Back to the coder.\n"
    assert [seen.body for seen in server.seen] == [
        {"notes": "Minor: prefer X", "model": "m"},
        {"review": {"verdict": "reject"}},
    ]


def test_a_review_is_only_checked_or_confirmed(run: Call, server: Server, tmp_path: Path) -> None:
    read_as = [
        "Handed in as a rejection; verdict in the text: none that can be read.",
        "1. HIGH: a\x1b[2J at b.py:1",
    ]
    server.on(
        "POST /api/v1/tasks/demo-3/reject/", {"message": "Nothing is handed in yet.", "read_as": read_as}
    )
    file = tmp_path / "review.md"
    file.write_text("HIGH: a")
    done = run("tasks", "reject", "demo-3", "--file", str(file), "--check")
    assert done.stdout.splitlines() == ["Nothing is handed in yet.", read_as[0], "1. HIGH: a at b.py:1"]
    run("tasks", "reject", "demo-3", "--file", str(file), "--confirm")
    assert [seen.body for seen in server.seen] == [
        {"review": "HIGH: a", "check": True}, {"review": "HIGH: a", "confirm": True},
    ]  # fmt: skip


def test_reject_wants_a_reason(run: Call, server: Server) -> None:
    assert run("tasks", "reject", "--notes", " ").returncode == 2
    assert server.seen == []


@pytest.mark.parametrize(
    "words",
    [
        ("tasks", "show"),
        ("tasks", "update", "--status", "pending"),
        ("tasks", "approve"),
        ("tasks", "reject", "--notes", "x"),
        ("tasks", "submit", "--sha", "a"),
        ("comment", "--body", "x"),
        ("blocked", "--reason", "x"),
        ("escalate", "--notes", "x"),
        ("dispute", "create", "--reason", "other", "--position", "x"),
        ("dispute", "log", "--minor", "--notes", "x"),
    ],
)
def test_only_a_run_knows_its_task(
    run: Call, bare: Call, server: Server, tmp_path: Path, words: tuple[str, ...]
) -> None:
    run(*words)
    assert server.seen[0].path.startswith("/api/v1/tasks/demo-3/")
    (tmp_path / "token").write_text(TOKEN)
    done = bare(*words, STEROIDS_URL=server.url, STEROIDS_TOKEN_FILE=tmp_path / "token")
    assert done.returncode == 2
    assert "Name the task" in done.stderr
    assert len(server.seen) == 1


@for_each("ref", ["../me", "..", "a/b", "a?b", "", "a b", "a\nb", "%2e"])
def test_an_id_cannot_leave_its_place(run: Call, server: Server, ref: str) -> None:
    assert run("tasks", "show", ref).returncode == 2
    assert server.seen == []


def test_escalating_names_its_reason(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/escalate/", {"message": "demo-3 is in needs-senior-dev now."})
    done = run("escalate", "demo-3", "--notes", "Two writers race.")
    assert (done.returncode, done.stdout) == (0, "demo-3 is in needs-senior-dev now.\n")
    run("escalate", "demo-3", "--reason", "concurrency", "--notes", "Two writers race.")
    assert [seen.body["reason"] for seen in server.seen] == ["unknown", "concurrency"]
    assert run("escalate", "demo-3", "--reason", "boredom", "--notes", "x").returncode == 2


def test_comment_and_blocked(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/comment/", {})
    server.on("POST /api/v1/tasks/demo-4/blocked/", {})
    done = run("comment", "demo-3", "--body", "- why?", "--target", "ISSUE-R1-001", "--parent", "12")
    assert (done.returncode, done.stdout) == (0, "")
    run("blocked", "demo-4", "--reason", "no licence key")
    assert [seen.body for seen in server.seen] == [
        {"body": "- why?", "target": "ISSUE-R1-001", "parent": 12},
        {"reason": "no licence key"},
    ]


def test_a_judge_gives_its_verdict_with_reasons_from_a_file_or_in_words(
    run: Call, server: Server, tmp_path: Path
) -> None:
    server.on("POST /api/v1/tasks/demo-3/opinion/", {"message": "Your opinion on C-9 is taken: Enforce."})
    reasons = tmp_path / "reasons.md"
    reasons.write_text("The delay is unbounded.\n")
    done = run("opinion", "demo-3", "--verdict", "enforce", "--reasons", str(reasons))
    assert (done.returncode, done.stdout) == (0, "Your opinion on C-9 is taken: Enforce.\n")
    run("opinion", "demo-3", "--verdict", "DISMISS", "--reasons", "It is bounded, see ratelimit.py:41.")
    assert [(seen.body["verdict"], seen.body["reasons"]) for seen in server.seen] == [
        ("ENFORCE", "The delay is unbounded.\n"), ("DISMISS", "It is bounded, see ratelimit.py:41."),
    ]  # fmt: skip


def test_a_mediator_proposes_or_says_that_there_is_no_way(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/opinion/", {})
    run("opinion", "demo-3", "--proposal", "A setting for it.", "--trade-off", "Half each, so to say.")
    run("opinion", "demo-3", "--none", "--reasons", "They want opposite things.")
    assert [seen.body for seen in server.seen] == [
        {"proposal": "A setting for it.", "trade_off": "Half each, so to say."},
        {"none": True, "reasons": "They want opposite things."},
    ]


@for_each(
    "words",
    [
        (), ("--none", "--proposal", "x y"), ("--verdict", "ENFORCE", "--none"), ("--verdict", "APPROVE"),
        ("--verdict", "ENFORCE", "--reasons", "no-such-file.md"),
    ],
)  # fmt: skip
def test_an_opinion_says_one_thing(run: Call, server: Server, words: tuple[str, ...]) -> None:
    done = run("opinion", "demo-3", *words)
    assert done.returncode == 2
    assert done.stderr
    assert server.seen == []


# --- disputes ---


def test_dispute_create_and_log(run: Call, server: Server) -> None:
    server.on("POST /api/v1/tasks/demo-3/dispute/", {"message": "D-7 waits for a human."})
    server.on("POST /api/v1/tasks/demo-3/log/", {"message": "Recorded."})
    words = ["--reason", "architecture_disagreement", "--position", "Session cookies are more secure"]
    done = run("dispute", "create", *words, "--finding", "ISSUE-R1-001", "--severity", "HIGH", "--model", "m")
    assert done.stdout == "D-7 waits for a human.\n"
    run("dispute", "create", "demo-3", "--reason", "Architecture disagreement")
    run("dispute", "log", "demo-3", "--minor", "--notes", "snake_case")
    assert [seen.body for seen in server.seen] == [
        {
            "reason": "architecture_disagreement",
            "position": "Session cookies are more secure",
            "finding": "ISSUE-R1-001",
            "severity": "high",
            "model": "m",
        },
        {"reason": "Architecture disagreement"},
        {"notes": "snake_case", "minor": True},
    ]


ROWS: list[dict[str, Any]] = [
    {
        "ref": "D-7",
        "task": {"ref": "demo-3", "title": "Fix login bug"},
        "status": "open",
        "reason": "architecture_disagreement",
        "days_open": 12,
    },
    {
        "ref": "D-11",
        "task": {"ref": "demo-9", "title": "Add caching"},
        "status": "resolved",
        "reason": "specification_ambiguity",
        "days_open": 9,
    },
]


def test_dispute_list(run: Call, server: Server) -> None:
    server.on(
        "GET /api/v1/disputes/",
        page(*ROWS, {"ref": "D-12", "task": None, "status": "open", "reason": "stall"}),
    )
    assert run("dispute", "list").stdout == (
        "ID    TASK           STATUS    REASON\n"
        "D-7   Fix login bug  open      architecture\n"
        "D-11  Add caching    resolved  specification\n"
        "D-12  -              open      stall\n"
    )


def test_dispute_list_sends_its_filters(run: Call, server: Server) -> None:
    server.on("GET /api/v1/disputes/?status=open&stale=1&recent=5", page(stale_after_days=7))
    done = run("dispute", "list", "--status", "open", "--stale", "--recent", "5")
    assert (done.returncode, done.stdout) == (0, "No disputes.\n")
    assert run("dispute", "list", "--recent", "0").returncode == 2


def test_dispute_list_stale(run: Call, server: Server) -> None:
    server.on("GET /api/v1/disputes/?stale=1", page(*ROWS, stale_after_days=7))
    assert run("dispute", "list", "--stale").stdout == (
        "WARNING: 2 disputes have been open for > 7 days\n"
        "\n"
        "ID    TASK           DAYS OPEN\n"
        "D-7   Fix login bug  12\n"
        "D-11  Add caching    9\n"
        "\n"
        "Run `steroids dispute show <id>` for details.\n"
    )


def test_dispute_show(run: Call, server: Server) -> None:
    ruled = {
        "letter": "B",
        "option": "uphold_coder",
        "text": "",
        "rationale": "It scales.",
        "by": "Ann",
        "at": "10:05",
    }
    first = {
        "ref": "C-9",
        "code": "ISSUE-R5-003",
        "kind": "disagreement",
        "status": "open",
        "severity": "HIGH",
        "presentation": "### Conflict: ISSUE-R5-003\n\n> XSS.\n>   Revocation is hard.",
        "options": [{"letter": "A", "key": "uphold_reviewer"}, {"letter": "B\x1b[2J", "key": "uphold_coder"}],
        "decision": None,
    }
    second = {"ref": "C-10", "code": "", "status": "decided", "presentation": "", "decision": ruled}
    dispute = {
        "ref": "D-7",
        "status": "open",
        "severity": "HIGH",
        "task": {"ref": "demo-3", "title": "Fix login bug"},
        "days_open": 12,
        "conflicts": [first, second],
    }
    server.on("GET /api/v1/disputes/D-7/", dispute)
    assert run("dispute", "show", "D-7").stdout == (
        "D-7  open  HIGH\n"
        "Task:       demo-3  Fix login bug\n"
        "Days open:  12\n"
        "\n"
        "C-9  ISSUE-R5-003  disagreement  HIGH  open\n"
        "\n"
        "### Conflict: ISSUE-R5-003\n"
        "\n"
        "> XSS.\n"
        ">   Revocation is hard.\n"
        "\n"
        "Rule with `steroids dispute resolve C-9 --decision WORD`: A or uphold_reviewer, B or uphold_coder.\n"
        "\n"
        "C-10  decided\n"
        "\n"
        "Decision: B  uphold_coder, by Ann, 10:05\n"
        "Rationale:\n"
        "    | It scales.\n"
    )


def test_the_word_of_a_ruling_is_sent_as_it_is_typed(run: Call, server: Server) -> None:
    """Which words a card knows is the server's to say."""
    server.on("POST /api/v1/disputes/demo-3/resolve/", {"message": "Ruled."})
    for word in ("reviewer", "A", "4", "false_positive"):
        done = run("dispute", "resolve", "demo-3", "--decision", word, "--notes", "why", "--all")
        assert done.stdout == "Ruled.\n"
    words = ["--conflict", "ISSUE-R5-003", "--text", "Do this"]
    run("dispute", "resolve", "demo-3", "--decision", "custom", "--notes", "Because", *words)
    assert [seen.body for seen in server.seen] == [
        *(
            {"decision": word, "notes": "why", "all": True}
            for word in ("reviewer", "A", "4", "false_positive")
        ),
        {"decision": "custom", "notes": "Because", "text": "Do this", "conflict": "ISSUE-R5-003"},
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("resolve", "D-7", "--notes", "x"),
        ("resolve", "--decision", "A", "--notes", "x"),
        ("resolve", "D-7", "--decision", "A", "--notes", "x", "--all", "--conflict", "C"),
    ],
)
def test_a_malformed_ruling_is_not_sent(run: Call, server: Server, words: tuple[str, ...]) -> None:
    assert run("dispute", *words).returncode == 2
    assert server.seen == []


def test_several_open_conflicts_are_listed(run: Call, server: Server) -> None:
    waiting = [
        {"ref": "C-9", "code": "ISSUE-R5-003", "severity": "HIGH", "question": "Cookies or JWT?"},
        {"ref": "C-10", "code": "ISSUE-R5-004", "severity": "LOW"},
    ]
    error = {
        "code": "several_open",
        "message": "2 conflicts are open.",
        "hint": "Name one, or --all.",
        "open": waiting,
    }
    server.on("POST /api/v1/disputes/D-7/resolve/", (409, error))
    done = run("dispute", "resolve", "D-7", "--decision", "A", "--notes", "x")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "steroids: 2 conflicts are open.",
        "Name one, or --all.",
        "  ISSUE-R5-003  C-9  HIGH  Cookies or JWT?",
        "  ISSUE-R5-004  C-10  LOW",
    ]


def test_whoami(run: Call, server: Server) -> None:
    server.on("GET /api/v1/me/", {"kind": "run", "name": "Coder 1", "role": "coder", "task": "demo-3"})
    assert run("whoami").stdout == "Kind:  run\nName:  Coder 1\nRole:  coder\nTask:  demo-3\n"
