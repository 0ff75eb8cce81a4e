"""From an agent's clone into the mirror, and what is saved of a run that handed nothing in."""

import contextlib
import logging
import socket
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.hosts import paths, starting, submissions
from agents.hosts.git import repository
from agents.hosts.git.commands import GitError
from agents.hosts.reconciler import Reconciler
from agents.loop import run_ends
from agents.models import Run
from disputes.protocol.text.diffs import CUT
from disputes.silence.changes import changes_since_last_round
from disputes.web.dispute.code import parse_diff
from tasks.models import Bundle, Event, Landing, Project, Submission, Task
from tests.agents.world import World, commit, git, make_world, write  # noqa: F401
from tests.cases import rows_put_back
from tests.factories import create_finding, create_review, create_run, sha

pytestmark = pytest.mark.django_db


def kinds(world: World) -> list[str]:
    return list(Event.objects.filter(project=world.project).order_by("pk").values_list("kind", flat=True))


def handed_in(world: World, files: dict[str, str | None]) -> tuple[Submission, Run]:
    """A submission that nobody has looked at yet."""
    run = world.coder()
    return world.hand_in(run, world.commit(run, files)), run


# --- Keeping ----------------------------------------------------------------------------------------------


def test_a_submission_is_kept_with_its_change(world: World) -> None:
    submission, run = handed_in(world, {"new.py": "one\ntwo\n", "README.md": "Another.\n"})
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT
    assert "+one" in submission.diff
    assert submission.diff_stat == {
        "files": [["README.md", 1, 1], ["new.py", 2, 0]], "since_base": ["README.md", "new.py"],
        "fork": world.remote.first, "undone": [], "more": 0, "commits": submission.diff_stat["commits"],
    }  # fmt: skip
    (told,) = submission.diff_stat["commits"]
    assert (told["sha"], told["message"]) == (submission.sha, "Work")
    assert submission.patch_id == world.mirror.patch_id(world.remote.first, submission.sha) != ""
    assert world.mirror.resolve(submissions.ref_of(submission)) == submission.sha
    assert kinds(world)[-1] == "kept"


def test_the_commits_that_land_are_told_with_their_words_and_what_was_undone_in_between(world: World) -> None:
    """A diff shows none of that, though it lands: a file that comes and goes, and whose name stands there."""
    run = world.coder()
    clone = paths.clone_of(run)
    world.commit(run, {"key.pem": "secret\n", "new.py": "one\n"}, "Begin")
    world.commit(run, {"key.pem": None, "new.py": "two\n"}, "x" * 5000)
    endless = ("--author=" + "n" * 5000 + " <a@b>", "--allow-empty", "--message=x")
    git(clone, "commit", "--quiet", *endless)
    boss = ("--author=The Boss <boss@example.org>", "--date=2001-02-03T04:05:06Z")
    git(clone, "commit", "--quiet", "--allow-empty", *boss, "--message=Fine\n\nTwo.")
    submission = world.hand_in(run, git(clone, "rev-parse", "HEAD"))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    last, by_endless, long, first = submission.diff_stat["commits"]
    assert (last["message"], last["author"]) == ("Fine\n\nTwo.", "The Boss <boss@example.org>, 2001-02-03")
    assert last["committer"].startswith("Ada <ada@example.org>, 20")
    assert (first["message"], long["message"]) == ("Begin", "x" * 1000 + "…")
    assert by_endless["author"] == "n" * 200 + "…"
    assert submission.diff_stat["undone"] == ["key.pem"]
    assert submission.diff_stat["more"] == 0
    for number in range(repository.COMMITS_TOLD):
        git(clone, "commit", "--quiet", "--allow-empty", f"--message={number}")
    Submission.objects.update(state="received", sha=git(clone, "rev-parse", "HEAD"))
    submission.refresh_from_db()
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert len(submission.diff_stat["commits"]) == repository.COMMITS_TOLD
    assert submission.diff_stat["more"] == 4


def test_a_submission_is_kept_with_what_the_specification_said_before_it(world: World) -> None:
    spec = "# Spec\n\n## Login\n\nThree tries.\n\n## Rounding\n\nHalf a minute counts.\n"
    world.remote.push({"docs/SPEC.md": spec})
    submission, run = handed_in(world, {"docs/SPEC.md": "# Mine\n", "docs/NEW.md": "# New\n"})
    for source, kept in (
        ("docs/SPEC.md#rounding", "## Rounding\n\nHalf a minute counts.\n"),
        ("docs/SPEC.md", spec), ("docs/NEW.md", "# New"), ("docs/GONE.md#rounding", ""), ("", ""),
        ("../../etc/passwd", ""),
    ):  # fmt: skip
        Submission.objects.update(state="received")
        submission.task.source = source
        submissions.keep(submission, run)
        submission.refresh_from_db(fields=["specification"])
        assert submission.specification.strip() == kept.strip(), source


def test_the_task_stays_in_review_while_its_submission_is_kept(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    submission.task.refresh_from_db()
    assert submission.task.status == "review"


def test_the_commits_are_in_the_database_as_well(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    world.lose_mirror()
    world.mirror.fetch_target()
    assert not world.mirror.has(submission.sha)
    submissions.bring_here(submission, world.mirror)
    assert world.mirror.read(submission.sha, "new.py", 100) == "one\n"


def test_a_commit_without_a_bundle_is_on_another_host(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    Bundle.objects.all().delete()
    submissions.bring_here(submission, world.mirror)
    world.lose_mirror()
    world.mirror.fetch_target()
    with pytest.raises(GitError, match="on another host"):
        submissions.bring_here(submission, world.mirror)


def test_commits_that_are_too_large_are_not_put_into_the_database(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "BUNDLE_MAX", 100)
    submission = world.kept({"new.py": "one\n"})
    assert not Bundle.objects.filter(submission=submission).exists()


def test_only_the_beginning_of_a_large_change_is_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "DIFF_MAX", 50)
    diff = world.kept({"new.py": "one\n" * 100}).diff
    assert len(diff.encode()) <= 50 + len(CUT)
    assert diff.endswith(CUT)
    assert parse_diff(diff).is_cut
    monkeypatch.setattr(submissions, "DIFF_MAX", 5000)
    assert not parse_diff(world.kept({"new.py": f"one\n{CUT}"}).diff).is_cut


def test_of_a_large_change_since_the_last_round_it_is_known_that_it_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a file that is not in the part that was kept counts as never touched: silence."""
    monkeypatch.setattr(submissions, "CHANGES_MAX", 300)
    first = world.kept({"one.py": "one\n"})
    Submission.objects.filter(pk=first.pk).update(state=Submission.State.RED)
    first.task.send_back(note="red")
    first.task.refresh_from_db()
    type(first.task).objects.filter(pk=first.task_id).update(round=2)
    first.task.refresh_from_db()
    run = world.coder(first.task, base=first.sha)
    second = world.hand_in(run, world.commit(run, {"a.py": "a long line of it\n" * 100, "z.py": "z\n"}))
    submissions.keep(second, run)
    second.refresh_from_db()
    changes = changes_since_last_round(second)
    assert changes is not None
    assert changes.is_cut
    assert (changes.of("a.py"), changes.of("z.py")) != (None, None)
    assert changes.of("z.py") is None


def test_what_others_landed_meanwhile_is_no_change_of_the_coders(world: World) -> None:
    """Else a ruling about a file that only they changed counts as carried out."""
    first = world.kept({"own.py": "one\n", "left.py": "one\n"})
    Submission.objects.filter(pk=first.pk).update(state=Submission.State.RED)
    first.task.send_back(note="red")
    type(first.task).objects.filter(pk=first.task_id).update(round=2)
    first.task.refresh_from_db()
    base = world.remote.push({"theirs.py": "one\n"})
    world.mirror.fetch_target()
    run = world.coder(first.task, base=base)
    second = world.hand_in(run, world.commit(run, {"own.py": "two\n", "a[1].py": "one\n"}))
    submissions.keep(second, run)
    second.refresh_from_db()
    changes = changes_since_last_round(second)
    assert changes is not None
    touched = [path for path in ("own.py", "left.py", "a[1].py", "theirs.py") if changes.of(path) is not None]
    assert touched == ["own.py", "left.py", "a[1].py"]


def test_keeping_twice_is_keeping_once(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    submissions.keep(submission, submission.run)
    assert kinds(world).count("kept") == 1
    assert Bundle.objects.filter(submission=submission).count() == 1


def test_a_submission_is_kept_while_the_remote_is_away(world: World) -> None:
    submission, run = handed_in(world, {"new.py": "one\n"})
    world.remote.path.rename(world.remote.path.with_name("away"))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT


def test_a_commit_without_a_change_is_kept_too(world: World) -> None:
    run = world.coder()
    submission = world.hand_in(run, world.remote.first)
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert (submission.state, submission.diff) == (Submission.State.KEPT, "")


def test_the_change_is_shown_against_the_target_and_not_only_against_the_last_round(world: World) -> None:
    first = world.kept({"one.py": "one\n"})
    first.task.send_back(note="red")
    run = world.coder(first.task, base=first.sha)
    second = world.hand_in(run, world.commit(run, {"two.py": "two\n"}))
    submissions.keep(second, run)
    second.refresh_from_db()
    assert [name for name, _, _ in second.diff_stat["files"]] == ["one.py", "two.py"]
    assert second.diff_stat["since_base"] == ["two.py"]


# --- Sending back -----------------------------------------------------------------------------------------


def assert_sent_back(submission: Submission, words: str) -> None:
    submission.refresh_from_db()
    task = submission.task
    task.refresh_from_db()
    assert submission.state == Submission.State.LOST
    assert words in submission.problem
    assert (task.status, task.round) == ("in_progress", 1)
    bounced = Event.objects.filter(task=task, kind="send_back").get()
    assert words in bounced.note
    assert not Bundle.objects.exists()


def test_a_commit_that_does_not_descend_from_its_base_comes_back(world: World) -> None:
    """F18: a rewritten history is not what was built on."""
    world.remote.push({"more.py": "more\n"})
    run = world.coder()
    clone = paths.clone_of(run)
    git(clone, "reset", "--quiet", "--hard", world.remote.first)
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    submissions.keep(submission, run)
    assert_sent_back(submission, f"does not descend from {run.base_sha[:12]}")


def test_a_coder_brings_over_what_was_accepted_before_the_branch_moved_on(world: World) -> None:
    """Work could be lost without a word, and a ruling with it: its coder begins anew on the branch."""
    task = world.task()
    run = world.coder(task)
    accepted = world.hand_in(
        run, world.commit(run, {"a.md": "Said.\n", "b.md": "Said.\n", "d.md": "Both.\n"})
    )
    submissions.keep(accepted, run)
    Landing.objects.create(
        project=world.project, task=task, submission=accepted, status="conflict", sha=accepted.sha
    )
    Submission.objects.update(state=Submission.State.VERIFIED)
    world.remote.push({"a.md": "Theirs.\n", "d.md": "Both.\n"})
    Task.objects.filter(pk=task.pk).update(status="in_progress")
    task.refresh_from_db()
    again = world.coder(task)
    clone = paths.clone_of(again)
    head = git(clone, "rev-parse", "HEAD")

    for files, response, missing, origin in (
        ({"c.md": "New.\n"}, "", "a.md, b.md", "rounds"),
        ({"a.md": "Fits again.\n"}, "", "b.md", "rounds"),
        ({"a.md": "Fits again.\n"}, "", "b.md", "manual"),
        ({}, "", "a.md, b.md", "manual"),
        ({"a.md": "Fits again.\n"}, "The branch decides b.md otherwise.", "", "rounds"),
        ({"a.md": "Fits again.\n", "b.md": "Said.\n"}, "", "", "manual"),
    ):
        case = f"{[*files]} {response} in {origin}"
        git(clone, "reset", "--quiet", "--hard", head)
        with rows_put_back():
            Task.objects.filter(pk=task.pk).update(origin=origin)
            run = Run.objects.get(pk=again.pk)
            handed = world.hand_in(run, world.commit(run, files) if files else head, response=response)
            submissions.keep(handed, run)
            handed.refresh_from_db()
            if missing:
                assert f"lacks what {accepted.sha[:12]} changed" in handed.problem, case
                assert handed.problem.endswith(f"why it is left out: {missing}"), case
            else:
                assert handed.state == Submission.State.KEPT, case


def test_a_commit_of_an_unrelated_history_comes_back(world: World) -> None:
    run = world.coder()
    git(paths.clone_of(run), "checkout", "--quiet", "--orphan", "fresh")
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    submissions.keep(submission, run)
    assert_sent_back(submission, "does not descend from")


def test_a_commit_that_is_nowhere_comes_back(world: World) -> None:
    run = world.coder()
    submission = world.hand_in(run, sha("d"))
    submissions.keep(submission, run)
    assert_sent_back(submission, f"The commit {'d' * 12} cannot be taken")


def test_a_clone_that_is_gone_sends_the_submission_back(world: World) -> None:
    submission, run = handed_in(world, {"new.py": "one\n"})
    paths.clone_of(run).rename(paths.run_folder(run.pk) / "moved")
    submissions.keep(submission, run)
    assert_sent_back(submission, "cannot be taken")


def test_a_commit_that_no_run_could_hold_comes_back_and_is_never_checked_out(
    world: World, tmp_path: Path
) -> None:
    """Its objects are small, so the agent's own run held it; the host's checkout would fill the disk."""
    world.settings.RUN_DISK_MAX_BYTES = 1024**2
    submission, run = handed_in(world, {f"{number}.txt": "same\n" * 10_000 for number in range(30)})
    assert submissions.salvage(run) == ""
    other = world.coder(world.task())
    made = world.commit(other, {"small.txt": "small\n"})
    write(paths.clone_of(other), {f"{number}.txt": "same\n" * 10_000 for number in range(30)})
    assert submissions.salvage(other) == made
    with pytest.raises(GitError, match="holds more than 1,048,576 bytes"):
        starting.check_out(world.mirror, tmp_path / "folder", submission.sha)
    assert not (tmp_path / "folder").exists()
    submissions.keep(submission, run)
    assert_sent_back(submission, "holds more than 1,048,576 bytes")


def test_a_commit_that_no_disk_can_hold_is_sent_back(world: World) -> None:
    """Git makes such commits without a work tree, and no checkout could begin."""
    deep = "/".join(["d" * 200] * 20)
    for mode, path, content in (
        ("100644", "n" * 300, ""),
        ("100644", deep, ""),
        ("120000", "link", "a" * 5000),
    ):
        run = world.coder()
        clone = paths.clone_of(run)
        blob = git(clone, "hash-object", "-w", "--stdin", stdin=content)
        git(clone, "update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
        made = git(clone, "commit-tree", git(clone, "write-tree"), "-p", run.base_sha, "-m", "Work")
        submission = world.hand_in(run, made)
        submissions.keep(submission, run)
        assert_sent_back(submission, f"holds {path[:80]}…, whose name, path or target is longer than a disk")


def test_a_verification_that_never_starts_is_not_tried_for_ever(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    for count in range(1, 7):
        submission.task.refresh_from_db()
        assert submission.task.status == "review"
        run_ends.end(create_run(submission.task, "verifier"), Run.Outcome.REFUSED, reason="It does not fit.")
        submission.task.refresh_from_db()
        assert (submission.task.not_before is not None) is (count > 1)
    assert submission.task.status == "disputed"
    question = submission.task.disputes.get().question
    assert question.startswith("6 runs of verifier-1 could not be started in a row")


def handed_in_afresh(world: World, coder: Run, files: dict[str, str | None]) -> Submission:
    """What became of this change alone, as the coder's only commit."""
    git(paths.clone_of(coder), "reset", "--quiet", "--hard", coder.base_sha)
    run = Run.objects.get(pk=coder.pk)
    submission = world.hand_in(run, world.commit(run, files))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    return submission


def test_records_that_the_program_writes_itself_are_refused_and_files_with_similar_names_are_not(
    world: World,
) -> None:
    coder = world.coder()
    for path in (
        "TODO.md", "dispute.md", "decisions.md", ".steroids/config.yaml", "Todo.MD", ".Steroids/config.yaml",
        ".steroids", "todo.md/part", "TO\u200cDO.md", "\ufeff.steroids/config.yaml", "dispute.md. ",
    ):  # fmt: skip
        with rows_put_back():
            submission = handed_in_afresh(world, coder, {"new.py": "one\n", path: "- [x] All done\n"})
            assert_sent_back(submission, f"touches {path}; leave these files alone")
    for path in ("docs/TODO.md", "steroids/a.py", "TODO.md.txt", "src/.steroids"):
        with rows_put_back():
            submission = handed_in_afresh(world, coder, {path: "text\n"})
            assert submission.state == Submission.State.KEPT, f"{path}: {submission.problem}"
            assert submission.diff_stat["since_base"] == [path]


def test_a_link_in_place_of_their_folder_is_refused(world: World) -> None:
    run = world.coder()
    (paths.clone_of(run) / ".steroids").symlink_to("docs")
    submission = world.hand_in(run, world.commit(run, {}))
    submissions.keep(submission, run)
    assert_sent_back(submission, "touches .steroids; leave these files alone")


def test_what_a_person_hands_in_is_fetched_from_the_remote(
    world: World, lea: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody fetched it, and the task waited in review for ever."""
    world.project.memberships.create(user=lea, role="maintainer")
    clone = tmp_path / "leas"
    git(tmp_path, "clone", "--quiet", str(world.remote.path), str(clone))
    first = commit(clone, {"new.py": "one\n"})
    git(clone, "push", "--quiet", "origin", "HEAD:refs/heads/leas-work")

    def handed_in_by_lea(name: str) -> Submission:
        client = APIClient()
        client.force_authenticate(lea)
        reply = client.post(f"/api/v1/tasks/{task.ref}/submit/", {"sha": name}, format="json")
        assert reply.status_code == 201, reply.data
        with Reconciler() as host:
            host.step()
        return Submission.objects.latest("pk")

    task = world.task(status="in_progress", round=1)
    unpushed = commit(clone, {"new.py": "two\n"})
    assert_sent_back(handed_in_by_lea(unpushed), "is not on the remote; push it to a branch there first")
    pushed = handed_in_by_lea(first)
    assert (pushed.state, pushed.diff_stat["files"]) == ("kept", [["new.py", 1, 0]])
    assert Bundle.objects.filter(submission=pushed).exists()
    task.refresh_from_db()
    assert task.status == "review"
    task.send_back(note="red")
    git(clone, "push", "--quiet", "origin", "HEAD:refs/heads/leas-work")
    world.remote.path.rename(tmp_path / "away")
    away = handed_in_by_lea(unpushed)
    world.project.refresh_from_db()
    assert (away.state, "cannot be reached" in world.project.trouble) == ("received", True)
    (tmp_path / "away").rename(world.remote.path)
    Project.objects.update(trouble_until=None)
    with Reconciler() as host:
        host.step()
    away.refresh_from_db()
    assert (away.state, away.base_sha) == ("kept", first)


def test_a_record_that_is_deleted_or_moved_is_refused_too(world: World) -> None:
    world.remote.push({"TODO.md": "- [ ] Much\n"})
    run = world.coder()
    git(paths.clone_of(run), "mv", "TODO.md", "done.md")
    submission = world.hand_in(run, world.commit(run, {}))
    submissions.keep(submission, run)
    assert_sent_back(submission, "touches TODO.md")


def test_a_record_that_somebody_else_changed_meanwhile_is_no_ones_fault(world: World) -> None:
    run = world.coder()
    world.remote.push({"TODO.md": "- [ ] More\n"})
    submission = world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT


def test_a_record_does_not_get_in_by_way_of_saved_work(world: World) -> None:
    """One run leaves a changed TODO.md behind without handing in; the next one starts from it."""
    run = world.coder()
    write(paths.clone_of(run), {"TODO.md": "- [x] All done\n"})
    saved = submissions.salvage(run)
    run_ends.end(run, Run.Outcome.STOPPED, salvage_sha=saved)
    again = world.coder(run.task, base=saved)
    submission = world.hand_in(again, world.commit(again, {"new.py": "one\n"}))
    submissions.keep(submission, again)
    submission.refresh_from_db()
    assert submission.state == Submission.State.LOST


def test_too_many_lost_submissions_end_with_a_human(world: World) -> None:
    world.settings.EMPTY_RUNS_MAX = 2
    task = world.task()
    for number in range(2):
        run = world.coder(task)
        submissions.keep(world.hand_in(run, sha(f"{number}")), run)
        task.refresh_from_db()
    assert task.status == "disputed"
    conflict = task.disputes.get().conflicts.get()
    assert (conflict.kind, conflict.origin) == ("help", "empty_runs")


def test_a_remote_that_never_answers_does_not_hold_the_host_up(world: World) -> None:
    """F10: while the loop waits, no lease is renewed, and every agent of this host is ended."""
    submission, run = handed_in(world, {"new.py": "one\n"})
    world.duration(git_network=120.0)
    world.settings.GIT_PROTOCOLS = ["http", "file"]
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as hung:
        hung.bind(("127.0.0.1", 0))
        hung.listen(8)
        submission.task.project.repo_url = f"http://127.0.0.1:{hung.getsockname()[1]}/x.git"
        started = time.monotonic()
        submissions.keep(submission, run)
        took = time.monotonic() - started
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT
    assert took < 120


def test_a_target_branch_that_is_nowhere_is_not_the_coders_fault(world: World) -> None:
    """Somebody mistyped it in the settings while the coder worked."""
    submission, run = handed_in(world, {"new.py": "one\n"})
    submission.task.project.target_branch = "mian"
    with contextlib.suppress(GitError):
        submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state != Submission.State.LOST


# --- Saving what was never handed in ----------------------------------------------------------------------


def test_work_that_was_never_committed_is_saved(world: World) -> None:
    run = world.coder()
    write(paths.clone_of(run), {"half.py": "half\n", "README.md": None})
    saved = submissions.salvage(run)
    assert world.mirror.resolve(f"refs/steroids/salvage/{run.task_id}") == saved
    assert {path for path, _, _ in world.mirror.changed(run.base_sha, saved).files} == {
        "half.py",
        "README.md",
    }


def test_work_that_was_committed_and_not_handed_in_is_saved_and_what_lies_on_top_of_it(world: World) -> None:
    run = world.coder()
    made = world.commit(run, {"half.py": "half\n"})
    assert submissions.salvage(run) == made
    write(paths.clone_of(run), {"rest.py": "rest\n"})
    saved = submissions.salvage(run)
    assert saved != made
    assert world.mirror.is_ancestor(made, saved)
    assert world.mirror.read(saved, "rest.py", 100) == "rest\n"


def test_there_is_nothing_to_save_where_nothing_was_done_and_a_branch_that_is_no_commit_is_not_believed(
    world: World,
) -> None:
    """The file is the agent's; nothing runs in its folder to read it."""
    run = world.coder()
    assert submissions.salvage(run) == ""
    branch = paths.clone_of(run) / ".git" / "refs" / "heads" / "steroids" / run.task.ref
    for text in ("", "--upload-pack=touch x", "refs/steroids/target/main", "f" * 40, "HEAD\nmain"):
        branch.write_text(text)
        assert submissions.salvage(run) == "", text
        assert world.mirror.resolve(world.mirror.target_ref) == world.remote.first, text
    paths.clone_of(run).rename(paths.run_folder(run.pk) / "moved")
    assert submissions.salvage(run) == "", "there is no clone"


def test_only_a_coders_work_is_saved(world: World) -> None:
    run = world.coder(role=Run.Role.REVIEWER)
    write(paths.clone_of(run), {"half.py": "half\n"})
    for role, is_saved in ((Run.Role.REVIEWER, False), (Run.Role.VERIFIER, False), (Run.Role.CODER, True)):
        run.role = role
        assert bool(submissions.salvage(run)) == is_saved, role


def test_a_rewritten_history_is_not_saved_as_the_next_base(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    run = world.coder()
    git(paths.clone_of(run), "checkout", "--quiet", "--orphan", "fresh")
    world.commit(run, {"new.py": "one\n"})
    git(paths.clone_of(run), "branch", "--force", f"steroids/{run.task.ref}", "HEAD")
    with caplog.at_level(logging.WARNING):
        assert submissions.salvage(run) == ""


def test_a_branch_that_is_a_link_is_not_followed(world: World, tmp_path: Path) -> None:
    run = world.coder()
    made = world.commit(run, {"half.py": "half\n"})
    branch = paths.clone_of(run) / ".git" / "refs" / "heads" / "steroids" / run.task.ref
    (tmp_path / "elsewhere").write_text(made)
    branch.unlink()
    branch.symlink_to(tmp_path / "elsewhere")
    saved = submissions.salvage(run)
    assert not world.mirror.has(made)
    assert world.mirror.read(saved, "half.py", 100) == "half\n"


# --- Excerpts ---------------------------------------------------------------------------------------------


def test_a_finding_shows_the_code_at_its_place_as_far_as_there_is_any(world: World) -> None:
    names = {"long.py": 100, "short.py": 20}
    submission = world.kept(
        {name: "".join(f"line {each}\n" for each in range(1, most + 1)) for name, most in names.items()}
    )
    review = create_review(submission)
    for path, line, start, first, last in (
        ("long.py", 50, 43, "line 43", "line 57"),
        ("short.py", 1, 1, "line 1", "line 8"),
        ("short.py", None, 1, "line 1", "line 8"),
        ("short.py", 999, 13, "line 13", "line 20"),
    ):
        finding = create_finding(review, path=path, line=line)
        submissions.add_excerpts([finding], world.mirror, submission.sha)
        finding.refresh_from_db()
        lines = finding.excerpt.splitlines()
        assert (finding.excerpt_start, lines[0], lines[-1]) == (start, first, last), (path, line)
    for path in ("missing.py", "/etc/hostname", "../../secret", ""):
        finding = create_finding(review, path=path)
        submissions.add_excerpts([finding], world.mirror, submission.sha)
        finding.refresh_from_db()
        assert finding.excerpt == "", path
