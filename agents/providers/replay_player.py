"""Play a recorded cassette in the place of a coding agent.

Run inside a git clone::

    python -I replay_player.py --cassettes DIR --prompt FILE

The prompt says which task it is about and what has happened to it so far. The player takes the cassette of
that task and the first scene whose words fit the prompt. Then it does for real what the scene says: it edits
files, runs commands, commits, and hands in through the ``steroids`` command. A cassette is a YAML file::

    task: Accept weeks                 # the title in the prompt's heading
    scenes:
      - role: coder                    # coder or reviewer
        when: ["Round 2"]              # all of these must be in the prompt
        unless: ["Round 3"]            # none of these may be
        do:
          - say: "Reading the code."
          - pause: 0.5                 # seconds, multiplied by STEROIDS_TIME_SCALE
          - write: {path: a.py, text: "..."}       # {ruling} in the text becomes the human's ruling
          - write: {path: b.py, from: weeks/b.py}  # a file of the cassette directory
          - replace: {path: a.py, old: "one", new: "two"}
          - delete: {path: c.py}
          - shell: "python -m unittest"
          - commit: "feat: accept weeks"
          - steroids: "tasks update {task} --status review --response {file}"
            file: "What {file} contains."
            may_fail: true

Exit codes: 0 the scene was played, 3 nothing was recorded for this prompt, 4 the scene cannot be played, or
else the exit code of the ``steroids`` command that failed.

This is a script of its own. It needs PyYAML and no part of the project.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

NOTHING_RECORDED = 3
CANNOT_PLAY = 4

HEADING = re.compile(r"^# (Task|Review) (\S+): (.+)$", re.MULTILINE)
RULING = re.compile(r"^## Decided since your last run.*?\n(.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL)
ROLES = {"Task": "coder", "Review": "reviewer"}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a tenth of the time, where libyaml is there

TEXT_ACTIONS = ("say", "shell", "commit", "steroids")
FILE_ACTIONS = {
    "write": ({"path", "text"}, {"path", "from"}),
    "replace": ({"path", "old", "new"},),
    "delete": ({"path"},),
}
ACTIONS = (*TEXT_ACTIONS, *FILE_ACTIONS, "pause")


class PlayerError(Exception):
    """The player stops here, with a sentence for people and an exit code."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class CassetteError(Exception):
    """A part of a cassette is malformed."""


@dataclass(frozen=True)
class ReadPrompt:
    """What the player understands of a prompt."""

    role: str
    task: str
    title: str
    text: str

    @property
    def ruling(self) -> str:
        """What a person decided since the last run; empty if there is nothing."""
        found = RULING.search(self.text)
        return found.group(1).strip() if found else ""


@dataclass(frozen=True)
class SceneStep:
    """One step of a scene; only ``steroids`` may have a file and may be allowed to fail."""

    action: str
    value: Any
    file: str | None = None
    may_fail: bool = False


@dataclass(frozen=True)
class Scene:
    """What one role does if the words of the prompt fit."""

    role: str
    when: tuple[str, ...]
    unless: tuple[str, ...]
    steps: tuple[SceneStep, ...]

    def fits(self, prompt: ReadPrompt) -> bool:
        """Whether this scene is meant for ``prompt``."""
        return (
            self.role == prompt.role
            and all(words in prompt.text for words in self.when)
            and not any(words in prompt.text for words in self.unless)
        )


@dataclass(frozen=True)
class Cassette:
    """All scenes recorded for one task."""

    folder: Path
    task: str
    scenes: tuple[Scene, ...]


# Reading


def read_prompt(path: Path) -> ReadPrompt:
    """Read the prompt, whose first heading names the role, the task and the title."""
    text = path.read_text(encoding="utf-8")
    heading = HEADING.search(text)
    if heading is None:
        raise PlayerError(NOTHING_RECORDED, "The prompt has no heading such as '# Task demo-1: Title'.")
    kind, task, title = heading.groups()
    return ReadPrompt(role=ROLES[kind], task=task, title=title.strip(), text=text)


def find_cassette(folder: Path, prompt: ReadPrompt) -> Cassette:
    """Return the cassette recorded for the title of ``prompt``."""
    for path in sorted(folder.glob("*.yaml")):
        if read_yaml(path).get("task") == prompt.title:
            return read_cassette(path)
    raise PlayerError(NOTHING_RECORDED, f"No cassette is recorded for {prompt.title!r} (role {prompt.role}).")


def find_scene(cassette: Cassette, prompt: ReadPrompt) -> Scene:
    """Return the first scene of ``cassette`` that fits ``prompt``."""
    for scene in cassette.scenes:
        if scene.fits(prompt):
            return scene
    raise PlayerError(
        NOTHING_RECORDED, f"No scene of {prompt.title!r} fits this prompt (role {prompt.role})."
    )


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), LOADER)  # noqa: S506 (both are safe)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PlayerError(CANNOT_PLAY, f"{path.name}: this is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise PlayerError(CANNOT_PLAY, f"{path.name}: a cassette must be a mapping.")
    return content


def read_cassette(path: Path) -> Cassette:
    """Read one cassette. Raises PlayerError if any scene is malformed."""
    content = read_yaml(path)
    task, scenes = content.get("task"), content.get("scenes")
    if set(content) != {"task", "scenes"} or not isinstance(task, str) or not isinstance(scenes, list):
        raise PlayerError(
            CANNOT_PLAY, f"{path.name}: a cassette must have the text 'task' and the list 'scenes'."
        )
    read: list[Scene] = []
    for number, scene in enumerate(scenes, start=1):
        try:
            read.append(read_scene(scene, path.parent))
        except CassetteError as reason:
            raise PlayerError(CANNOT_PLAY, f"{path.name}, scene {number}: {reason}") from None
    return Cassette(folder=path.parent, task=task, scenes=tuple(read))


def read_scene(raw: Any, folder: Path) -> Scene:
    """Read one scene of a cassette in ``folder``."""
    if not isinstance(raw, dict) or not {"role", "do"} <= set(raw) <= {"role", "when", "unless", "do"}:
        raise CassetteError("a scene must have 'role' and 'do', and may have 'when' and 'unless'.")
    if raw["role"] not in ROLES.values():
        raise CassetteError(f"the role must be coder or reviewer, not {raw['role']!r}.")
    if not isinstance(raw["do"], list) or not raw["do"]:
        raise CassetteError("'do' must be a list with at least one step.")
    return Scene(
        role=raw["role"],
        when=read_words(raw, "when"),
        unless=read_words(raw, "unless"),
        steps=tuple(read_step(step, folder) for step in raw["do"]),
    )


def read_words(raw: dict[str, Any], key: str) -> tuple[str, ...]:
    """Read the words to look for in the prompt."""
    words = raw.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise CassetteError(f"{key!r} must be a list of texts.")
    return tuple(words)


def read_step(raw: Any, folder: Path) -> SceneStep:
    """Read one step: an action with its value, and for ``steroids`` the file and whether it may fail."""
    if not isinstance(raw, dict):
        raise CassetteError(f"a step must be a mapping, not {raw!r}.")
    actions = [key for key in raw if key in ACTIONS]
    if len(actions) != 1:
        raise CassetteError(f"a step must name exactly one of {', '.join(ACTIONS)}; this one is {raw!r}.")
    action = actions[0]
    beside = set(raw) - {action}
    if beside - ({"file", "may_fail"} if action == "steroids" else set()):
        raise CassetteError(f"{action!r} does not go together with {', '.join(sorted(map(str, beside)))}.")
    step = SceneStep(action, raw[action], raw.get("file"), raw.get("may_fail", False))
    check_value(step, folder)
    return step


def check_value(step: SceneStep, folder: Path) -> None:
    """Raise CassetteError if the action cannot work with the step's value."""
    value = step.value
    if step.action == "pause":
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise CassetteError(f"'pause' must be a number of seconds, not {value!r}.")
    elif step.action in FILE_ACTIONS:
        forms = FILE_ACTIONS[step.action]
        if not isinstance(value, dict) or set(value) not in forms:
            wanted = " or ".join(", ".join(sorted(form)) for form in forms)
            raise CassetteError(f"{step.action!r} must be a mapping with {wanted}.")
        if not all(isinstance(text, str) for text in value.values()):
            raise CassetteError(f"all values of {step.action!r} must be texts.")
        if "from" in value and not inside(folder, value["from"]).is_file():
            raise CassetteError(f"there is no file {value['from']!r} to write {value['path']!r} from.")
    elif not isinstance(value, str) or not value:
        raise CassetteError(f"{step.action!r} must be a text, not {value!r}.")
    elif step.action == "steroids":
        check_command(step)


def check_command(step: SceneStep) -> None:
    """Raise CassetteError if a ``steroids`` step cannot be run."""
    try:
        shlex.split(step.value)
    except ValueError as error:
        raise CassetteError(f"the command {step.value!r} cannot be split: {error}.") from None
    if not isinstance(step.file, str | None) or not isinstance(step.may_fail, bool):
        raise CassetteError("'file' must be a text and 'may_fail' must be true or false.")
    if ("{file}" in step.value) != (step.file is not None):
        raise CassetteError("'file' and the word {file} in the command need each other.")


def inside(folder: Path, relative: str) -> Path:
    """Return the path of a file below ``folder``. Raises CassetteError if it leaves the folder."""
    root = folder.resolve()
    path = (root / relative).resolve()
    if path == root or not path.is_relative_to(root):
        raise CassetteError(f"the path {relative!r} leaves its directory.")
    return path


# Playing


class Player:
    """Does the steps of a scene in a clone."""

    def __init__(self, clone: Path, cassettes: Path, prompt: ReadPrompt, time_scale: float) -> None:
        self.clone = clone
        self.cassettes = cassettes
        self.prompt = prompt
        self.time_scale = time_scale

    def play(self, scene: Scene) -> None:
        """Do the steps of the scene, one after the other."""
        for step in scene.steps:
            try:
                self.do(step)
            except CassetteError as reason:
                raise PlayerError(CANNOT_PLAY, f"{step.action}: {reason}") from None

    def do(self, step: SceneStep) -> None:
        """Do one step."""
        match step.action:
            case "say":
                say(step.value)
            case "pause":
                time.sleep(step.value * self.time_scale)
            case "write":
                self.write(step.value)
            case "replace":
                self.replace(**step.value)
            case "delete":
                inside(self.clone, step.value["path"]).unlink(missing_ok=True)
            case "shell":
                say(f"(exit status {self.run(['/bin/sh', '-c', step.value])})")
            case "commit":
                self.commit(step.value)
            case "steroids":
                self.steroids(step)

    def write(self, value: dict[str, str]) -> None:
        """Write a whole file, from a text or from a file next to the cassette."""
        target = inside(self.clone, value["path"])
        target.parent.mkdir(parents=True, exist_ok=True)
        if "from" in value:
            shutil.copyfile(inside(self.cassettes, value["from"]), target)
        else:
            target.write_text(value["text"].replace("{ruling}", self.prompt.ruling), encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace ``old`` in a file, where it must occur exactly once."""
        target = inside(self.clone, path)
        text = target.read_text(encoding="utf-8")
        found = text.count(old)
        if found != 1:
            raise CassetteError(f"{old!r} must be in {path} exactly once, but it is there {found} times.")
        target.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self, message: str) -> None:
        """Commit everything; having nothing to commit is fine."""
        if self.run(["git", "add", "-A"]):
            raise PlayerError(CANNOT_PLAY, "The files could not be added to git.")
        if not self.run(["git", "diff", "--cached", "--quiet"]):
            say("Nothing to commit.")
        elif self.run(["git", "commit", "-q", "-m", message]):
            raise PlayerError(CANNOT_PLAY, f"git could not commit {message!r}.")

    def steroids(self, step: SceneStep) -> None:
        """Run the ``steroids`` command; the file it is given lies outside the clone."""
        with tempfile.TemporaryDirectory(prefix="replay-") as folder:
            file = Path(folder) / "file.md"
            file.write_text(step.file or "", encoding="utf-8")
            words = [
                word.replace("{task}", self.prompt.task).replace("{file}", str(file))
                for word in shlex.split(step.value)
            ]
            exit_code = self.run(["steroids", *words])
        if exit_code and not step.may_fail:
            raise PlayerError(exit_code, f"'steroids {step.value}' failed with exit code {exit_code}.")

    def run(self, command: list[str]) -> int:
        """Run a command in the clone, with its output going where ours goes, and return its exit code."""
        return subprocess.run(
            command, cwd=self.clone, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False
        ).returncode


def say(text: str) -> None:
    """Print ``text`` at once, so that it appears before the output of the next command."""
    print(text, flush=True)


def read_time_scale() -> float:
    """Return the factor by which every recorded pause is multiplied."""
    written = os.environ.get("STEROIDS_TIME_SCALE", "1")
    try:
        scale = float(written)
    except ValueError:
        scale = math.nan
    if not 0 <= scale < math.inf:
        raise PlayerError(CANNOT_PLAY, f"STEROIDS_TIME_SCALE must be a number from 0 up, not {written!r}.")
    return scale


def main() -> int:
    """Play the scene recorded for the prompt and return the exit code."""
    parser = argparse.ArgumentParser(description="Play a recorded cassette in the place of a coding agent.")
    parser.add_argument("--cassettes", type=Path, required=True, help="the directory of the cassettes")
    parser.add_argument("--prompt", type=Path, required=True, help="the file with the prompt")
    arguments = parser.parse_args()
    try:
        prompt = read_prompt(arguments.prompt)
        cassette = find_cassette(arguments.cassettes, prompt)
        scene = find_scene(cassette, prompt)
        Player(Path.cwd(), cassette.folder, prompt, read_time_scale()).play(scene)
    except PlayerError as stop:
        say(str(stop))
        return stop.exit_code
    except OSError as error:
        say(f"The scene cannot be played: {error}")
        return CANNOT_PLAY
    return 0


if __name__ == "__main__":
    sys.exit(main())
