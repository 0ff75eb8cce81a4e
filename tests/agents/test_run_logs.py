"""The log of a live run becomes rows: whole, once, few of them, and alive for as long as it prints."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from agents import outputs
from agents.hosts import outcomes, paths
from agents.models import Run
from tasks.models import Project
from tests.factories import create_agent, create_run, create_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(ledger: Project) -> Run:
    run = create_run(create_task(ledger))
    paths.run_folder(run.pk).mkdir(parents=True, exist_ok=True)
    for name in ("copied", "output.log"):
        (paths.run_folder(run.pk) / name).unlink(missing_ok=True)
    return run


def output(run: Run) -> Path:
    return paths.run_folder(run.pk) / "output.log"


def say(run: Run, text: str) -> None:
    with output(run).open("a") as file:
        file.write(text)


def kept(run: Run) -> str:
    return "".join(run.outputs.order_by("seq").values_list("text", flat=True))


def test_a_coder_that_prints_steadily_is_followed_to_its_end(run: Run) -> None:
    said = ""
    for step in range(120):
        Run.objects.filter(pk=run.pk).update(last_output_at=timezone.now() - timedelta(hours=1))
        run.refresh_from_db()
        say(run, f"step {step}: édité\n")
        said += f"step {step}: édité\n"
        outcomes.copy_output(run)
        assert kept(run) == said
        run.refresh_from_db()
        assert run.last_output_at is not None
        assert timezone.now() - run.last_output_at < timedelta(minutes=5)
    assert run.outputs.count() == 1
    outcomes.copy_rest(run)
    assert kept(run) == said


def test_a_long_log_keeps_its_beginning_and_its_tail_and_counts_what_is_missing(run: Run) -> None:
    line = "x" * 99 + "\n"
    say(run, line * 20_000)
    while outcomes.copy_output(run):
        pass
    assert kept(run) == (line * 20_000)[: outcomes.LOG_MAX]
    Run.objects.filter(pk=run.pk).update(last_output_at=timezone.now() - timedelta(hours=1))
    say(run, line)
    run.refresh_from_db()
    assert not outcomes.copy_output(run)
    run.refresh_from_db()
    assert run.last_output_at is not None
    assert timezone.now() - run.last_output_at < timedelta(minutes=5)  # busy, though nothing more is kept
    for _ in range(2):  # an end that was interrupted is repeated
        outcomes.copy_rest(run)
        missing = 2_000_100 - outcomes.LOG_MAX - outcomes.TAIL
        begin, said, tail = kept(run).partition(f"\n[{missing} bytes left out]\n")
        assert said
        assert begin == (line * 20_000)[: outcomes.LOG_MAX]
        assert tail == (line * 1000)[-outcomes.TAIL :]
    assert run.outputs.count() <= outcomes.LOG_MAX // outputs.ROW + 2


def test_a_log_without_line_ends_is_kept_whole_and_its_token_masked(run: Run) -> None:
    for byte in f"\r10 %\r20 é% stx_{'a' * 40} tests st".encode():
        with output(run).open("ab") as file:
            file.write(bytes([byte]))
        outcomes.copy_output(run)
    assert kept(run) == "\r10 %\r20 é% stx_*** tests "
    outcomes.copy_rest(run)
    assert kept(run) == "\r10 %\r20 é% stx_*** tests st"


def test_a_token_is_masked_however_it_is_coloured(run: Run) -> None:
    """Pages leave out what a terminal does not show, and the parts would be one again."""
    half = "a" * 20
    for number, token in enumerate((
        f"stx_{half}\0{half}", f"s\0tx_{half}", f"stx_\x1b[01;31m{half}\x1b[0m{half}",
        f"stx_{half[:9]}\x7f{half}",
    )):  # fmt: skip
        say(run, f"{token} {number}\n")
        outcomes.copy_output(run)
        assert kept(run).endswith(f"stx_*** {number}\n"), token
    assert "aaa" not in kept(run)


def test_what_the_host_and_the_agent_sign_in_with_is_masked(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each agent sees its own key, and whoever may see the run reads its log."""
    jwt, renew = f"eyJ{'h' * 30}.{'c' * 40}-_", f"1//0{'r' * 30}"
    signed_in, key, folder = tmp_path / "auth.json", tmp_path / "key", tmp_path / "of-keys"
    known = {"a_name_of_twenty_letters": jwt, "t": [{"r": renew}], "of": "https://id.example/a/long/path"}
    signed_in.write_text(json.dumps(known | {"last_refresh": "2026-11-28T12:00:00.000000Z"}))
    key.write_text("horse-7-a\n")
    folder.mkdir()
    run.agent = create_agent(settings={"sign_in_file": str(signed_in)})
    for name, value in (
        ("ANTHROPIC_API_KEY", "sk-canary-1234"), ("MY_TOKEN", "sk-canary-1234-longer"), ("A_SECRET", "short"),
        ("PIP_INDEX_URL", "https://me:canary-pass@pypi.example/simple"), ("PLAIN", "canary-of-no-matter"),
        ("MY_KEY_FILE", str(key)), ("KEYS", str(folder)), ("LOST_KEY", f"/no/such/{'p' * 9}"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    say(run, "sk-canary-1234 sk-canary-1234-longer https://me:canary-pass@pypi.example short\n")
    say(run, f"canary-of-no-matter /no/such/{'p' * 9}\n")
    say(
        run,
        signed_in.read_text().replace('"', '\\"')
        + f"\n{key.read_text()}{key} {folder} {settings.SECRET_KEY}\n",
    )
    outcomes.copy_output(run)
    told = signed_in.read_text().replace(jwt, "***").replace(renew, "***").replace('"', '\\"')
    first = "*** *** https://me:***@pypi.example short\ncanary-of-no-matter ***\n"
    assert kept(run) == f"{first}{told}\n***\n{key} {folder} ***\n"


def test_a_mark_that_an_agent_wrote_ends_no_copying(run: Run) -> None:
    say(run, "one\n")
    for nonsense in ("-7", "no number", ""):
        (paths.run_folder(run.pk) / "copied").write_text(nonsense)
        outcomes.copy_rest(run)
    assert kept(run) == "one\n" * 3
