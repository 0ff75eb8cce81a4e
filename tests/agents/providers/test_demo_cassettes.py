"""The demo: every cassette tells its story with real edits in a real clone of the demo library."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents.providers.replay_player import read_cassette
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import place, read_review
from tests.agents.providers.test_replay_player import Stage

pytestmark = pytest.mark.slow

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"
CASSETTES = DEMO / "cassettes"
BUILD = "python -m compileall -q src"
TESTS = "python -m unittest discover -s tests -t ."

FINDINGS = "## Findings to answer\n\n- ISSUE-R1-001\n- ISSUE-R1-002\n"
SETTLED = "## Settled. Do not raise again.\n\n- ISSUE-R1-001 (HIGH): B, uphold_coder\n"
RULED = "## Ruled by a human\n\n- ISSUE-R1-001 (HIGH)\n"
RED = "## Build or tests were red\n\nFAILED (failures=3)\n"

STRAIGHT = ["Accept weeks", "Add up a time sheet", "Print a report"]
ROUNDING = "Round to the nearest minute"
NAMES = "Name your own units"


class Played(NamedTuple):
    """What one run left: its commit, its calls of ``steroids``, and what the last of them handed in."""

    commit: str
    calls: list[list[str]]
    handed_in: str


class Story(Stage):
    """A clone of the demo library in which tasks are worked on.

    Whoever begins at the same commit with the same prompt does the same, so that is played once.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CASSETTES)
        shutil.copytree(
            DEMO / "library", self.clone, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "docs: start")
        self.git("tag", "start")
        self.known: dict[tuple[str, str], Played] = {}
        self.green: dict[str, bool] = {}

    def begin(self) -> None:
        """Go back to before all tasks."""
        self.git("checkout", "-q", "-B", "main", "start")

    def code(self, title: str, *sections: str) -> list[str]:
        """Let the coder play, and return the words of the last call of ``steroids``."""
        return self._act("Task", title, *sections)

    def review(self, title: str, *sections: str) -> list[str]:
        """Let the reviewer play with the full diff, and return the words of the last call of ``steroids``."""
        return self._act("Review", title, *sections, self.git("diff", "start", "HEAD"))

    def _act(self, kind: str, title: str, *sections: str) -> list[str]:
        prompt = "\n\n".join([f"# {kind} demo-1: {title}", *sections])
        begun = self.git("rev-parse", "HEAD")
        if (begun, prompt) not in self.known:
            before = len(self.calls)
            played = self.play(prompt)
            assert played.returncode == 0, played.stdout + played.stderr
            assert self.git("status", "--porcelain") == ""
            file = self._recorded()[-1] / "file"
            handed_in = file.read_text() if file.exists() else ""
            self.known[begun, prompt] = Played(self.git("rev-parse", "HEAD"), self.calls[before:], handed_in)
        self.last = self.known[begun, prompt]
        self.git("reset", "-q", "--hard", self.last.commit)
        return self.last.calls[-1]

    @property
    def handed_in(self) -> str:
        return self.last.handed_in

    @property
    def is_green(self) -> bool:
        """Say whether the build and the tests of the library pass."""
        if self.tree not in self.green:
            ran = (self.run("/bin/sh", "-c", command).returncode for command in (BUILD, TESTS))
            self.green[self.tree] = all(code == 0 for code in ran)
        return self.green[self.tree]

    @property
    def tree(self) -> str:
        """The tree of the last commit."""
        return self.git("rev-parse", "HEAD^{tree}")


def decided(ruling: str, words: str = "Because I say so.", about: str = "ISSUE-R1-001") -> str:
    """Return the section of a prompt with what a human decided."""
    return f"## Decided since your last run. Honour it.\n\n1. {about} (HIGH): {ruling}\n\n{words}\n"


A = decided("A, uphold_reviewer")
D = decided("D, other", "Readers come first, but keep the totals right.")
C = decided("C, compromise", "Half up for a line, exact for the total.")
D_CALLER = decided("D, other", "Do neither. Let the caller choose, half up by default.")

# What the coder is told, prompt after prompt, until the task is approved.
CODER_PROMPTS = {
    **{title: [["Round 1"]] for title in STRAIGHT},
    "Read negative spans": [["Round 1"], ["Round 2", FINDINGS]],
    "Read clock times": [["Round 1"], ["Round 1", RED]],
    "Shorten long spans": [["Round 1"], ["Round 2", FINDINGS]],
    NAMES: [["Round 1"]],
    ROUNDING: [["Round 1"], ["Round 2", FINDINGS]],
}


@pytest.fixture(scope="module")
def everything_played(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("story"))


@pytest.fixture
def story(everything_played: Story) -> Story:
    everything_played.begin()
    return everything_played


@pytest.fixture
def disputed(story: Story) -> Story:
    """The story of the rounding, up to the moment a human is asked."""
    for prompt in CODER_PROMPTS[ROUNDING]:
        story.code(ROUNDING, *prompt)
    return story


# The demo as a whole


def test_every_scene_can_be_loaded() -> None:
    cassettes = [read_cassette(path) for path in CASSETTES.glob("*.yaml")]
    assert sorted(cassette.task for cassette in cassettes) == sorted(CODER_PROMPTS)
    assert all({scene.role for scene in cassette.scenes} == {"coder", "reviewer"} for cassette in cassettes)


def test_every_task_of_the_todo_list_is_recorded() -> None:
    titles = re.findall(r"^- \[ \] (.+)$", todo(), re.MULTILINE)
    assert sorted(titles) == sorted(CODER_PROMPTS)
    assert re.findall(r"^  depends: (.+)$", todo(), re.MULTILINE) == [ROUNDING]


def test_every_task_names_a_section_of_the_specification() -> None:
    headings = re.findall(r"^## (.+)$", (DEMO / "library/docs/SPEC.md").read_text(), re.MULTILINE)
    sources = re.findall(r"^  source: docs/SPEC.md#(\S+)$", todo(), re.MULTILINE)
    assert len(sources) == len(CODER_PROMPTS)
    assert set(sources) <= {heading.lower().replace(" ", "-") for heading in headings}


def test_no_scene_is_chosen_by_words_that_the_demo_itself_writes() -> None:
    scenes = [scene for path in CASSETTES.glob("*.yaml") for scene in read_cassette(path).scenes]
    sought = {words for scene in scenes for words in (*scene.when, *scene.unless)}
    written = [path.read_text() for path in DEMO.rglob("*") if path.suffix in {".md", ".py"}]
    for step in (step for scene in scenes for step in scene.steps):
        if step.action in {"write", "commit", "steroids"}:
            written += [*texts(step.value), step.file or ""]
    assert [words for words in sought if any(words in text for text in written)] == []


def test_the_library_is_green_before_the_tasks(story: Story) -> None:
    assert story.is_green
    assert story.git("status", "--porcelain") == ""


@pytest.mark.parametrize("title", CODER_PROMPTS)
def test_a_run_that_was_killed_can_be_played_again(story: Story, title: str) -> None:
    land_rounding_first(story, title)
    for prompt in CODER_PROMPTS[title]:
        story.code(title, *prompt)
        tree = story.tree
        assert story.code(title, *prompt)[:2] == ["tasks", "update"]
        assert story.tree == tree


@pytest.mark.parametrize(
    ("rulings", "backwards"),
    [([A], False), ([], True), ([D], False), ([D_CALLER], True)],
    ids=["A", "B", "D", "D caller"],
)
def test_all_tasks_land_one_after_the_other(story: Story, rulings: list[str], backwards: bool) -> None:
    free = [title for title in CODER_PROMPTS if title != "Print a report"]
    for title in [*(reversed(free) if backwards else free), "Print a report"]:
        story.git("checkout", "-q", "-b", "work", "start" if title in free else "main")
        for prompt in CODER_PROMPTS[title]:
            story.code(title, *prompt)
        for ruling in rulings if title in (ROUNDING, NAMES) else []:
            story.code(title, "Round 3", ruling)
        story.git("rebase", "-q", "main")
        story.git("checkout", "-q", "-B", "main", "work")
        story.git("branch", "-q", "-D", "work")
        assert story.is_green, title


# a) Approved in round 1


@pytest.mark.parametrize("title", STRAIGHT)
def test_a_straight_task_is_green_and_approved_in_round_1(story: Story, title: str) -> None:
    land_rounding_first(story, title)
    assert story.code(title, "Round 1")[:5] == ["tasks", "update", "demo-1", "--status", "review"]
    assert story.is_green
    assert story.review(title, "Round 1")[:3] == ["tasks", "approve", "demo-1"]


# b) Rejected, fixed, approved


def test_negative_spans_are_rejected_with_a_high_and_a_low_finding(story: Story) -> None:
    story.code("Read negative spans", "Round 1")
    assert story.is_green
    assert story.review("Read negative spans", "Round 1")[:3] == ["tasks", "reject", "demo-1"]
    assert findings(story.handed_in) == {"ISSUE-R1-001": "high", "ISSUE-R1-002": "low"}


def test_negative_spans_are_fixed_and_approved(story: Story) -> None:
    story.code("Read negative spans", "Round 1")
    assert read_span(story, "-1h 30m") == "-1800"
    story.code("Read negative spans", "Round 2", FINDINGS)
    assert answers(story.handed_in) == {"ISSUE-R1-001": "addressed", "ISSUE-R1-002": "addressed"}
    assert (story.is_green, read_span(story, "-1h 30m")) == (True, "-5400")
    assert story.review("Read negative spans", "Round 2")[:2] == ["tasks", "approve"]


# c) Sent back by red tests


def test_clock_times_come_with_red_tests_and_are_fixed_in_the_same_round(story: Story) -> None:
    story.code("Read clock times", "Round 1")
    assert not story.is_green
    story.code("Read clock times", "Round 1", RED)
    assert story.is_green
    assert story.review("Read clock times", "Round 1")[:2] == ["tasks", "approve"]


def test_the_fix_of_the_clock_times_leaves_the_tests_as_they_were(story: Story) -> None:
    story.code("Read clock times", "Round 1")
    story.code("Read clock times", "Round 1", RED)
    assert story.git("diff", "--name-only", "HEAD~1", "HEAD") == "src/timespan/clock.py"


# d) The coder disagrees


def test_the_rounding_is_rejected_with_a_high_finding(story: Story) -> None:
    story.code(ROUNDING, "Round 1")
    assert story.is_green
    assert story.review(ROUNDING, "Round 1")[:2] == ["tasks", "reject"]
    assert findings(story.handed_in) == {"ISSUE-R1-001": "high", "ISSUE-R1-002": "low"}


def test_the_coder_disagrees_in_a_changed_submission(story: Story) -> None:
    story.code(ROUNDING, "Round 1")
    before = story.tree
    story.code(ROUNDING, "Round 2", FINDINGS)
    assert (story.is_green, story.tree != before) == (True, True)
    assert answers(story.handed_in) == {"ISSUE-R1-001": "declined", "ISSUE-R1-002": "addressed"}


def test_the_disagreement_quotes_the_review_word_for_word(story: Story) -> None:
    story.code(ROUNDING, "Round 1")
    story.review(ROUNDING, "Round 1")
    review = story.handed_in
    story.code(ROUNDING, "Round 2", FINDINGS)
    [disagreement] = read_response(story.handed_in).disagreements
    assert disagreement.code == "ISSUE-R1-001"
    assert disagreement.concern in review


@pytest.mark.parametrize("ruling", [A, C, D, D_CALLER], ids=["A", "C", "D", "D caller"])
def test_after_a_ruling_the_rounding_is_green_and_approved(disputed: Story, ruling: str) -> None:
    disputed.code(ROUNDING, "Round 3", ruling, FINDINGS)
    assert answers(disputed.handed_in)["ISSUE-R1-001"] == "addressed"
    assert disputed.is_green
    assert disputed.review(ROUNDING, "Round 3", RULED)[:2] == ["tasks", "approve"]


def test_after_ruling_b_the_disputed_rounding_is_approved(disputed: Story) -> None:
    assert disputed.is_green
    assert disputed.review(ROUNDING, "Round 2", SETTLED)[:2] == ["tasks", "approve"]


def test_every_ruling_leads_to_another_tree(disputed: Story) -> None:
    trees = {"B": disputed.tree}
    disputed.git("tag", "disputed")
    for name, ruling in {"A": A, "D": D, "D caller": D_CALLER}.items():
        disputed.git("checkout", "-q", "-B", name.replace(" ", "-"), "disputed")
        disputed.code(ROUNDING, "Round 3", ruling)
        trees[name] = disputed.tree
    assert len(set(trees.values())) == 4


def test_the_own_words_of_a_human_are_kept(disputed: Story) -> None:
    disputed.code(ROUNDING, "Round 3", D)
    kept = (disputed.clone / "docs/decisions/rounding.md").read_text()
    assert "ISSUE-R1-001 (HIGH): D, other" in kept
    assert "Readers come first, but keep the totals right." in kept


# e) A minor dispute


def test_short_spans_are_rejected_with_a_medium_and_a_low_finding(story: Story) -> None:
    story.code("Shorten long spans", "Round 1")
    assert story.is_green
    assert story.review("Shorten long spans", "Round 1")[:2] == ["tasks", "reject"]
    assert findings(story.handed_in) == {"ISSUE-R1-001": "medium", "ISSUE-R1-002": "low"}


def test_the_coder_logs_a_minor_dispute_and_hands_in(story: Story) -> None:
    story.code("Shorten long spans", "Round 1")
    story.code("Shorten long spans", "Round 2", FINDINGS)
    assert story.last.calls[-2][:5] == ["dispute", "log", "demo-1", "--minor", "--notes"]
    assert story.last.calls[-1][:2] == ["tasks", "update"]
    assert answers(story.handed_in)["ISSUE-R1-001"] == "addressed"
    assert story.is_green
    assert story.review("Shorten long spans", "Round 2")[:2] == ["tasks", "approve"]


# f) The reviewer asks a human


def test_the_reviewer_of_the_names_opens_a_dispute(story: Story) -> None:
    story.code(NAMES, "Round 1")
    assert story.is_green
    *words, position = story.review(NAMES, "Round 1")
    assert words == ["dispute", "create", "demo-1", "--reason", "architecture_disagreement", "--position"]
    assert "docs/SPEC.md#named-units" in position


@pytest.mark.parametrize("ruling", ["A, uphold_reviewer", "C, compromise", "D, other"])
@pytest.mark.parametrize("rounds", ["Round 1", "Round 2"])
def test_after_a_ruling_the_names_are_reworked_and_approved(story: Story, ruling: str, rounds: str) -> None:
    story.code(NAMES, "Round 1")
    before = story.tree
    story.code(NAMES, rounds, decided(ruling, about="Task demo-1"))
    assert (story.is_green, story.tree != before) == (True, True)
    assert story.review(NAMES, rounds, RULED)[:2] == ["tasks", "approve"]


def test_after_ruling_b_the_names_are_approved_as_they_are(story: Story) -> None:
    story.code(NAMES, "Round 1")
    settled = "## Settled. Do not raise again.\n\n- Task demo-1 (HIGH): B, uphold_coder\n"
    assert story.review(NAMES, "Round 1", settled)[:2] == ["tasks", "approve"]


# All reviews


@pytest.mark.parametrize("title", ["Read negative spans", ROUNDING, "Shorten long spans"])
def test_every_finding_points_at_a_line_that_was_changed(story: Story, title: str) -> None:
    story.code(title, "Round 1")
    story.review(title, "Round 1")
    places = [place(finding.location) for finding in read_review(story.handed_in).findings]
    blamed = [
        story.git("blame", "-s", f"-L{line},{line}", "start..HEAD", "--", path) for path, line in places
    ]
    assert len(places) == 2
    assert not any(line.startswith("^") for line in blamed)


# Helpers


def todo() -> str:
    """Return the tasks of the demo."""
    return (DEMO / "TODO.md").read_text()


def texts(value: Any) -> Iterator[str]:
    """Return the texts in the value of a step."""
    yield from value.values() if isinstance(value, dict) else [value]


def land_rounding_first(story: Story, title: str) -> None:
    """Do the task that the report depends on."""
    if title == "Print a report":
        story.code(ROUNDING, "Round 1")


def findings(review: str) -> dict[str, str]:
    """Return the severity of each finding in a review, as the project reads it."""
    return {finding.code: str(finding.severity) for finding in read_review(review).findings}


def answers(response: str) -> dict[str, str]:
    """Return the answer to each finding in a response, as the project reads it."""
    return {answer.code: str(answer.kind) for answer in read_response(response).answers}


def read_span(story: Story, text: str) -> str:
    """Return the seconds the library of the story reads in ``text``."""
    code = f"import tests; from timespan import parse_span; print(parse_span({text!r}))"
    return story.run("python", "-c", code).stdout.strip()
