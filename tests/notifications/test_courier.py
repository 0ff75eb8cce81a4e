"""What a courier may do, and what it refuses whatever the address says."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from disputes.models import Channel
from disputes.notifications import addresses, post
from disputes.notifications.courier import is_public, redacted
from tasks.errors import Refused
from tests.cases import for_each
from tests.notifications.receiver import MailServer, Receiver


@for_each(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False), ("127.9.9.9", False), ("::1", False), ("0.0.0.0", False), ("::", False),
        ("10.0.0.1", False), ("172.16.5.4", False), ("192.168.1.1", False), ("100.64.0.1", False),
        ("169.254.169.254", False), ("fe80::1", False), ("fe80::1%eth0", False), ("fd00::1", False),
        ("::ffff:127.0.0.1", False), ("::ffff:169.254.169.254", False), ("64:ff9b::a9fe:a9fe", False),
        ("2002:7f00:1::", False), ("2001:0:53aa:64c:0:fbef:f5ff:fffe", False),
        ("192.0.0.8", False), ("192.0.0.170", False), ("192.88.99.1", False), ("168.63.129.16", False),
        ("192.0.2.1", False), ("198.18.0.1", False), ("198.51.100.1", False), ("203.0.113.9", False),
        ("fec0::1", False), ("::7f00:1", False), ("::a9fe:a9fe", False), ("2002:a83f:8110::", False),
        ("64:ff9b::c058:6301", False), ("64:ff9b:1::1", False), ("100::1", False), ("2001:db8::1", False),
        ("3fff::1", False), ("5f00::1", False), ("::ffff:168.63.129.16", False), ("2001:20::1", False),
        ("64:ff9b::5db8:d822", True), ("168.63.129.17", True), ("192.0.1.1", True),
        ("224.0.0.1", False), ("240.0.0.1", False), ("255.255.255.255", False), ("ff02::1", False),
    ],
)  # fmt: skip
def test_it_knows_what_is_no_business_of_a_message(address: str, public: bool) -> None:
    assert is_public(address) is public


@for_each(
    "act",
    [
        "open('/etc/passwd')",
        "open('/tmp/new', 'w')",
        "__import__('os').system('true')",
        "__import__('subprocess').run(['true'])",
        "__import__('socket').create_connection(('127.0.0.1', 9))",
        "__import__('socket').socket(1, 2).connect('/var/run/docker.sock')",
        "__import__('socket').socket(2, 2).sendto(b'x', ('93.184.216.34', 53))",
    ],
)
def test_the_guard_holds_whatever_a_library_does(act: str) -> None:
    folder = str(post.COURIER.parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); import courier; courier.guard(False); {act}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert "PermissionError: " in done.stderr
    assert done.returncode == 1


def test_its_environment_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "not-for-couriers")
    spy = tmp_path / "spy.py"
    spy.write_text("import json, os, sys; print(json.dumps({'ok': True, 'service': ' '.join(os.environ)}))")
    monkeypatch.setattr(post, "COURIER", spy)

    seen = post.carry({}).service
    assert "SECRET" not in seen
    assert "STEROIDS" not in seen


def test_a_courier_that_dies_is_a_failed_try(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(post, "COURIER", tmp_path / "dies.py")

    assert post.carry({}) == post.SendOutcome(False, "The message could not be carried.")


def test_an_error_keeps_the_host_and_nothing_else_of_an_address() -> None:
    address = "slack://T1JJ3T3L2:p%40ssword@hooks.example.org/A1BRTD4JD?token=abcdefgh"
    told = redacted(address, "hooks.example.org refused T1JJ3T3L2, p@ssword\nA1BRTD4JD abcdefgh " + "x" * 999)

    assert told.startswith("hooks.example.org refused ***, *** *** *** x")
    assert len(told) <= 300


# --- Which addresses are taken at all -----------------------------------------------------------------------


@for_each(
    "address",
    [
        "exec://ls", "dbus://", "gnome://", "syslog://", "rsyslog://example.org", "file:///etc/passwd",
        "windows://", "macosx://", "smpp://u:p@example.org/1", "json+exec://example.org", "http://example.org",
        "https://example.org/anything", "javascript:alert(1)", "just words", "", "json://", "x" * 3000,
        "mailto://user:pass@example.org?pgpkey=/etc/passwd", "workflows://h/w/s?template=/etc/passwd",
        "json://127.0.0.1/x", "json://localhost/x", "json://[::1]/x", "json://169.254.169.254/latest",
        "json://example.org\r\nHost: evil", "json://example.org/a b", "json://example.org:99999/",
    ],
)  # fmt: skip
def test_an_address_that_leads_elsewhere_is_refused(address: str) -> None:
    with pytest.raises(Refused, match="This address cannot be used"):
        addresses.checked(Channel.Kind.PEOPLE, address)


@for_each(
    "address",
    [
        "http://example.org/hook", "ftp://example.org", "https://", "https://u:p@example.org/", "https://x.org/#a",
        "https://10.0.0.8/hook", "https://localhost/hook", "https://[fd00::1]/", "slack://a/b/c",
    ],
)  # fmt: skip
def test_a_webhook_is_https_and_public(address: str) -> None:
    with pytest.raises(Refused, match="This address cannot be used"):
        addresses.checked(Channel.Kind.WEBHOOK, address)


@for_each(
    ("address", "service"),
    [
        ("mailtos://user:pass@example.org?to=team@example.org", "E-Mail"),
        ("https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "Slack"),
        ("ntfys://example.org/our-topic", "ntfy"),
    ],
)
def test_usual_addresses_are_taken(address: str, service: str) -> None:
    assert addresses.checked(Channel.Kind.PEOPLE, address).service == service


def test_a_redirect_to_a_private_address_is_refused_too(receiver: Receiver) -> None:
    # The guard asks at each connection; here the first one is let through, as if it were public.
    receiver.statuses, receiver.location = [302], f"http://localhost:{receiver.port}/inside"
    code = (
        f"import sys; sys.path.insert(0, {str(post.COURIER.parent)!r}); import courier\n"
        "courier.is_public = lambda host, seen=[]: seen.append(host) or len(seen) == 1\n"
        "courier.main()"
    )
    parcel: dict[str, Any] = {
        "kind": "people", "address": f"json://127.0.0.1:{receiver.port}/", "title": "a", "body": "b",
        "private": False,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(parcel), capture_output=True, text=True, timeout=60
    )

    assert json.loads(done.stdout)["permanent"]
    assert [taken.path for taken in receiver.taken] == ["/"]


def test_an_answer_without_end_takes_no_memory_of_this_machine(settings: Any) -> None:
    settings.TELL_PRIVATE = True
    sent = [0]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            there, _ = server.accept()
            with there, contextlib.suppress(OSError):
                there.recv(65536)
                there.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while sent[0] < 1024**3:
                    there.sendall(b"x" * 1024**2)
                    sent[0] += 1024**2

        threading.Thread(target=answer, daemon=True).start()
        address = f"json://127.0.0.1:{server.getsockname()[1]}/"
        done = post.carry({"kind": "people", "address": address, "title": "a", "body": "b"}, 60)
    assert done.error == "The server's answer is too long."
    assert sent[0] < 512 * 1024**2


def test_only_the_status_of_a_webhooks_answer_counts_and_what_is_wrong_with_it_is_a_sentence(
    settings: Any,
) -> None:
    settings.TELL_PRIVATE = True
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    for raw, stays, error in (
        (ok, True, ""),
        (ok + b"half", False, ""),
        (b"HTTP/1.1 302 Found\r\n\r\n", False, "The server answered 302."),
        (b"", False, "The server closed the connection without an answer."),
        (b"SSH-2.0-OpenSSH\r\n", False, "What the server answered is not HTTP."),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000, False, "What the server answered is not HTTP."),
    ):
        done = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as server:

            def answer(raw: bytes = raw, stays: bool = stays, done: threading.Event = done) -> None:
                there, _ = server.accept()  # noqa: B023
                with there, contextlib.suppress(OSError):
                    there.recv(65536)
                    there.sendall(raw)
                    if stays:
                        done.wait(60)

            threading.Thread(target=answer, daemon=True).start()
            address = f"http://127.0.0.1:{server.getsockname()[1]}/"
            parcel = {"kind": "webhook", "address": address, "headers": {}, "body": "{}"}
            told = post.carry(parcel, 60)
            done.set()
        assert (told.ok, told.error) == (not error, error), raw[:40]


def test_what_is_wrong_with_a_mail_server_is_a_sentence(mail: MailServer) -> None:
    address = (
        f"mailto://somebody:secret@127.0.0.1:{mail.server_address[1]}"
        "?from=a@example.org&to=tom@example.org&mode=insecure"
    )
    parcel = {"kind": "people", "address": address, "title": "a", "body": "b", "id": "1"}
    refused = "The mail server answered "
    for at, answer, error in (
        (b"AUTH", b"535 Bad AHNvbWVib2R5", "The mail server does not take this user name and password."),
        (b"MAIL", b"530 5.7.0 Authentication required", f"{refused}530: 5.7.0 Authentication required."),
        (b"RCPT", b"550 No such user: tom@example.org.", f"{refused}550: No such user: tom@***."),
        (b".", b"552 Mailbox full", f"{refused}552: Mailbox full."),
        (b".", b"", "The server closed the connection without an answer."),
        (b"", b"421 Too busy", f"{refused}421: Too busy."),
    ):
        mail.answers = {b"AUTH": b"235 fine", at: answer}
        told = post.carry(parcel, 60)
        assert (told.ok, told.error) == (False, error), (at, answer)
