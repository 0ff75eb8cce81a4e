"""The replay player, run the way it is run for real: as a script, inside a git clone."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.providers.replay_player import PlayerError, find_cassette, read_prompt
from tests.cases import for_each

PLAYER = Path(__file__).resolve().parents[3] / "agents" / "providers" / "replay_player.py"

# Records how it was called and what it was handed, and exits as it is told to.
FAKE_STEROIDS = """\
#!/bin/sh
call="$RECORD/$(ls "$RECORD" | wc -l)"
mkdir "$call"
printf '%s\\0' "$@" > "$call/words"
before=
for word in "$@"; do
  case "$before" in --file|--response) cp "$word" "$call/file" ;; esac
  before="$word"
done
echo "steroids heard: $1 $2"
exit "${STEROIDS_EXIT:-0}"
"""


class Stage:
    """A clone, a directory of cassettes and a fake ``steroids`` that remembers its calls."""

    def __init__(self, folder: Path, cassettes: Path | None = None) -> None:
        self.clone = folder / "clone"
        self.cassettes = cassettes or folder / "cassettes"
        self.prompt = folder / "prompt.md"
        self.record = folder / "record"
        programs = folder / "programs"
        for path in (self.clone, self.cassettes, self.record, programs):
            path.mkdir(parents=True, exist_ok=True)
        (programs / "steroids").write_text(FAKE_STEROIDS)
        (programs / "steroids").chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RECORD": str(self.record),
            "STEROIDS_TIME_SCALE": "0",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "Coder",
            "GIT_AUTHOR_EMAIL": "coder@example.org",
            "GIT_COMMITTER_NAME": "Coder",
            "GIT_COMMITTER_EMAIL": "coder@example.org",
        }
        self.run("git", "init", "-q", "-b", "main")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone."""
        return subprocess.run(
            command, cwd=self.clone, env=self.environment, capture_output=True, text=True, check=False
        )

    def git(self, *words: str) -> str:
        """Run git in the clone and return what it prints."""
        ran = self.run("git", *words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip()

    def tape(self, *scenes: dict[str, Any], task: str = "Paint the door") -> None:
        """Put a cassette into the directory."""
        content = yaml.safe_dump({"task": task, "scenes": list(scenes)}, sort_keys=False)
        (self.cassettes / "door.yaml").write_text(content)

    def play(self, prompt: str = "# Task demo-3: Paint the door\n") -> subprocess.CompletedProcess[str]:
        """Play the scene recorded for ``prompt``."""
        self.prompt.write_text(prompt)
        return self.run(
            *(sys.executable, "-I", str(PLAYER)),
            *("--cassettes", str(self.cassettes), "--prompt", str(self.prompt)),
        )

    @property
    def calls(self) -> list[list[str]]:
        """The words of every call of ``steroids``."""
        return [(call / "words").read_text().split("\0")[:-1] for call in self._recorded()]

    @property
    def handed_in(self) -> str:
        """What the last call of ``steroids`` was handed in its file."""
        return (self._recorded()[-1] / "file").read_text()

    def _recorded(self) -> list[Path]:
        return sorted(self.record.iterdir(), key=lambda call: int(call.name))


def coder(*steps: dict[str, Any], **words: Any) -> dict[str, Any]:
    """Return a scene of the coder."""
    return {"role": "coder", **words, "do": list(steps)}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


# Choosing a scene


def test_it_plays_the_first_scene_whose_words_fit(stage: Stage) -> None:
    stage.tape(
        coder({"say": "third time"}, when=["Round 3"]),
        coder({"say": "second time"}, when=["Round 2", "ISSUE-R1-001"]),
        coder({"say": "first time"}),
    )
    assert stage.play("# Task demo-3: Paint the door\nRound 2\nISSUE-R1-001\n").stdout == "second time\n"
    assert stage.play("# Task demo-3: Paint the door\nRound 2\n").stdout == "first time\n"


def test_it_passes_over_a_scene_with_a_word_that_must_not_be_there(stage: Stage) -> None:
    stage.tape(coder({"say": "before"}, unless=["Round 2", "Round 3"]), coder({"say": "after"}))
    assert stage.play("# Task demo-3: Paint the door\nRound 1\n").stdout == "before\n"
    assert stage.play("# Task demo-3: Paint the door\nRound 3\n").stdout == "after\n"


def test_the_first_heading_names_the_role_and_the_title(stage: Stage) -> None:
    stage.tape(coder({"say": "coding"}), {"role": "reviewer", "do": [{"say": "reviewing"}]})
    prompt = "Rules first.\n# Rules: none\n# Review demo-3: Paint the door\n# Task demo-4: Other\n"
    assert stage.play(prompt).stdout == "reviewing\n"
    assert stage.play().stdout == "coding\n"


def test_a_task_without_a_cassette_ends_with_3(stage: Stage) -> None:
    played = stage.play("# Review demo-9: Move the wall\n")
    assert played.returncode == 3
    assert played.stdout == "No cassette is recorded for 'Move the wall' (role reviewer).\n"


def test_a_prompt_without_a_scene_ends_with_3(stage: Stage) -> None:
    stage.tape(coder({"say": "hello"}, when=["Round 2"]))
    played = stage.play()
    assert played.returncode == 3
    assert played.stdout == "No scene of 'Paint the door' fits this prompt (role coder).\n"


def test_a_prompt_without_a_heading_ends_with_3(stage: Stage) -> None:
    played = stage.play("Paint the door\n")
    assert (played.returncode, "no heading" in played.stdout) == (3, True)


# Steps


def test_it_writes_a_text_and_a_file_of_the_cassettes(stage: Stage) -> None:
    (stage.cassettes / "door").mkdir()
    (stage.cassettes / "door" / "red.txt").write_text("red\n")
    stage.tape(
        coder(
            {"write": {"path": "a/b/door.txt", "text": "blue\n"}},
            {"write": {"path": "c/door.txt", "from": "door/red.txt"}},
        )
    )
    assert stage.play().returncode == 0
    assert (stage.clone / "a/b/door.txt").read_text() == "blue\n"
    assert (stage.clone / "c/door.txt").read_text() == "red\n"


def test_a_written_text_can_hold_the_ruling(stage: Stage) -> None:
    stage.tape(coder({"write": {"path": "door.txt", "text": "Decided:\n{ruling}\n"}}))
    stage.play(
        "## Decided since your last run. Honour it.\n\n1. ISSUE-R1-001 (HIGH): D, other\n\n"
        "Paint it green.\n\n# Task demo-3: Paint the door\n\n## Findings to answer\n\nnone\n"
    )
    written = (stage.clone / "door.txt").read_text()
    assert written == "Decided:\n1. ISSUE-R1-001 (HIGH): D, other\n\nPaint it green.\n"


@pytest.mark.parametrize("path", ["../door.txt", "/etc/door.txt", "out/door.txt", "."])
def test_it_writes_nothing_outside_the_clone(stage: Stage, path: str) -> None:
    (stage.clone / "out").symlink_to(stage.clone.parent)
    stage.tape(coder({"write": {"path": path, "text": "blue"}}))
    played = stage.play()
    assert (played.returncode, "leaves its directory" in played.stdout) == (4, True)
    assert not (stage.clone.parent / "door.txt").exists()


def test_it_replaces_what_is_there_once(stage: Stage) -> None:
    (stage.clone / "door.txt").write_text("red door, red frame")
    stage.tape(coder({"replace": {"path": "door.txt", "old": "red door", "new": "blue door"}}))
    assert stage.play().returncode == 0
    assert (stage.clone / "door.txt").read_text() == "blue door, red frame"


def test_it_does_not_replace_what_is_there_twice(stage: Stage) -> None:
    (stage.clone / "door.txt").write_text("red door, red frame")
    stage.tape(coder({"replace": {"path": "door.txt", "old": "red", "new": "blue"}}))
    played = stage.play()
    assert played.returncode == 4
    assert "'red' must be in door.txt exactly once, but it is there 2 times" in played.stdout


def test_it_deletes_a_file_and_does_not_mind_when_it_is_gone(stage: Stage) -> None:
    (stage.clone / "door.txt").write_text("red")
    stage.tape(coder({"delete": {"path": "door.txt"}}))
    assert [stage.play().returncode, stage.play().returncode] == [0, 0]
    assert not (stage.clone / "door.txt").exists()


def test_a_shell_command_may_fail(stage: Stage) -> None:
    stage.tape(coder({"say": "look"}, {"shell": "echo out; echo err >&2; exit 7"}, {"say": "go on"}))
    played = stage.play()
    assert played.returncode == 0
    assert played.stdout == "look\nout\nerr\n(exit status 7)\ngo on\n"


def test_pauses_are_scaled(stage: Stage) -> None:
    stage.tape(coder({"pause": 200}))
    stage.environment["STEROIDS_TIME_SCALE"] = "0.002"
    started = time.monotonic()
    assert stage.play().returncode == 0
    assert 0.4 <= time.monotonic() - started < 200


def test_it_commits_everything(stage: Stage) -> None:
    stage.tape(coder({"write": {"path": "door.txt", "text": "blue"}}, {"commit": "feat: paint the door"}))
    assert stage.play().returncode == 0
    assert stage.git("log", "--format=%s") == "feat: paint the door"
    assert stage.git("status", "--porcelain") == ""


def test_a_scene_can_be_played_over_its_own_result(stage: Stage) -> None:
    stage.tape(coder({"write": {"path": "door.txt", "text": "blue"}}, {"commit": "feat: paint the door"}))
    stage.play()
    again = stage.play()
    assert (again.returncode, again.stdout) == (0, "Nothing to commit.\n")
    assert stage.git("rev-list", "--count", "HEAD") == "1"


def test_a_commit_that_fails_ends_the_scene(stage: Stage) -> None:
    (stage.clone / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (stage.clone / ".git/hooks/pre-commit").chmod(0o755)
    stage.tape(coder({"write": {"path": "door.txt", "text": "blue"}}, {"commit": "feat: x"}, {"say": "on"}))
    played = stage.play()
    assert played.returncode == 4
    assert played.stdout == "git could not commit 'feat: x'.\n"


# Handing in

HAND_IN = "tasks update {task} --status review --response {file}"


def test_it_hands_in_with_a_file_outside_the_clone(stage: Stage) -> None:
    stage.tape(coder({"steroids": HAND_IN, "file": "It is blue, {task}.\n"}))
    assert stage.play().stdout == "steroids heard: tasks update\n"
    *words, file = stage.calls[0]
    assert words == ["tasks", "update", "demo-3", "--status", "review", "--response"]
    assert not Path(file).is_relative_to(stage.clone)
    assert stage.handed_in == "It is blue, {task}.\n"


def test_the_task_is_filled_in_after_the_words_are_split(stage: Stage) -> None:
    stage.tape(coder({"steroids": 'tasks approve {task} --notes "It\'s blue, {task}"'}))
    stage.play("# Task a'b: Paint the door\n")
    assert stage.calls == [["tasks", "approve", "a'b", "--notes", "It's blue, a'b"]]


def test_a_failing_command_ends_the_scene_with_its_exit_code(stage: Stage) -> None:
    stage.tape(coder({"steroids": "tasks approve {task}"}, {"say": "done"}))
    stage.environment["STEROIDS_EXIT"] = "6"
    played = stage.play()
    assert played.returncode == 6
    assert played.stdout.endswith("'steroids tasks approve {task}' failed with exit code 6.\n")


def test_a_command_that_may_fail_does_not_end_the_scene(stage: Stage) -> None:
    stage.tape(coder({"steroids": "tasks approve {task}", "may_fail": True}, {"say": "done"}))
    stage.environment["STEROIDS_EXIT"] = "6"
    played = stage.play()
    assert (played.returncode, played.stdout) == (0, "steroids heard: tasks approve\ndone\n")


# Malformed cassettes


@for_each(
    ("scene", "reason"),
    [
        ("just a text", "a scene must have 'role' and 'do'"),
        ({"role": "coder", "do": [{"say": "x"}], "if": ["y"]}, "a scene must have 'role' and 'do'"),
        ({"role": "tester", "do": [{"say": "x"}]}, "the role must be coder or reviewer"),
        ({"role": "coder", "do": []}, "'do' must be a list with at least one step"),
        (coder({"say": "x"}, when="Round 2"), "'when' must be a list of texts"),
        (coder({"say": "x", "shell": "ls"}), "exactly one of say"),
        (coder({"dance": "x"}), "exactly one of say"),
        (coder({"say": "x", "file": "y"}), "'say' does not go together with file"),
        (coder({"say": 3}), "'say' must be a text"),
        (coder({"pause": "long"}), "'pause' must be a number of seconds"),
        (coder({"write": {"path": "a"}}), "'write' must be a mapping with path, text or from, path"),
        (coder({"write": {"path": "a", "text": 3}}), "all values of 'write' must be texts"),
        (coder({"write": {"path": "a", "from": "gone.txt"}}), "there is no file 'gone.txt'"),
        (coder({"write": {"path": "a", "from": "../prompt.md"}}), "leaves its directory"),
        (coder({"steroids": 'tasks "update'}), "cannot be split"),
        (coder({"steroids": "tasks update {file}"}), "need each other"),
        (coder({"steroids": "tasks update", "may_fail": "yes"}), "'may_fail' must be true or false"),
    ],
)
def test_a_malformed_scene_is_refused_before_anything_is_played(
    stage: Stage, scene: Any, reason: str
) -> None:
    """Where it is found; what is said of a file that is no cassette goes the whole way."""
    stage.tape(coder({"say": "hello"}), scene)
    stage.prompt.write_text("# Task demo-3: Paint the door\n")
    with pytest.raises(PlayerError) as refused:
        find_cassette(stage.cassettes, read_prompt(stage.prompt))
    assert refused.value.exit_code == 4
    assert str(refused.value).startswith("door.yaml, scene 2: ")
    assert reason in str(refused.value)


@pytest.mark.parametrize("content", ["task: [", "- a list", "task: Paint the door", ""])
def test_a_file_that_is_no_cassette_is_refused(stage: Stage, content: str) -> None:
    (stage.cassettes / "door.yaml").write_text(content)
    played = stage.play()
    assert played.returncode == 4
    assert played.stdout.startswith("door.yaml: ")


def test_a_time_scale_that_is_no_number_is_refused(stage: Stage) -> None:
    stage.tape(coder({"say": "hello"}))
    stage.environment["STEROIDS_TIME_SCALE"] = "fast"
    assert stage.play().stdout == "STEROIDS_TIME_SCALE must be a number from 0 up, not 'fast'.\n"


def test_a_prompt_that_is_not_there_is_refused(stage: Stage) -> None:
    played = stage.run(sys.executable, "-I", str(PLAYER), "--cassettes", ".", "--prompt", "gone.md")
    assert (played.returncode, "gone.md" in played.stdout) == (4, True)
