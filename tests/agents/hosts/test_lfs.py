"""Files that Git LFS keeps elsewhere: only pointers are in a clone, and that is said."""

import os

import pytest

from agents.hosts import lfs, paths, submissions
from tasks.models import Submission
from tests.agents.hosts.test_keeping import assert_sent_back
from tests.agents.hosts.test_submodules import prepared, said
from tests.agents.world import World, git, import_commit, make_world, write  # noqa: F401  (a fixture)

pytestmark = pytest.mark.django_db
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4' * 64}\nsize 1234\n"
KEPT = {".gitattributes": "*.bag filter=lfs diff=lfs merge=lfs -text\n"}


def head_with(world: World, files: dict[str, str]) -> str:
    import_commit(world.remote.path, files, "Data", "from refs/heads/main^0\n")
    world.mirror.fetch_target()
    return git(world.remote.path, "rev-parse", "main")


def test_a_run_says_which_files_are_only_pointers(world: World) -> None:
    files = {"data/a.bag": POINTER, "data/b.bag": POINTER, "c.bag": "whole", "pointer.txt": POINTER}

    assert said(prepared(world, head_with(world, files))) == "", "Git LFS keeps none of them"
    told = said(prepared(world, head_with(world, KEPT)))
    assert told == "Git LFS keeps 2 files whose content is not fetched, such as data/a.bag\n"


def test_hostile_names_and_links_say_nothing(world: World) -> None:
    clone = prepared(world, head_with(world, KEPT | {"a.bag": "whole", "b\x1b[2J.bag": POINTER}))
    (clone.parent / "outside").write_text(POINTER)
    (clone / "a.bag").unlink()
    (clone / "a.bag").symlink_to("../outside")
    assert lfs.said_of(clone) == ""
    (clone / ".gitattributes").unlink()
    os.mkfifo(clone / ".gitattributes")
    assert lfs.said_of(clone) == ""


# --- Commits that hold such a file whole ------------------------------------------------------------------


def kept_of(world: World, files: dict[str, str | None]) -> Submission:
    """A submission that adds these files to a branch some of whose files Git LFS keeps."""
    head_with(
        world, KEPT | {"old.bag": "whole", "there.bag": POINTER, "sub/.gitattributes": "*.png filter=lfs"}
    )
    run = world.coder()
    (paths.clone_of(run) / "link.bag").symlink_to("there.bag")
    submission = world.hand_in(run, world.commit(run, files))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    return submission


@pytest.mark.parametrize("path", ["new.bag", "there.bag", "sub/a.png"])
def test_a_file_that_git_lfs_keeps_is_not_taken_whole(world: World, path: str) -> None:
    submission = kept_of(world, {path: "whole\n", "more.py": "one\n"})
    assert_sent_back(submission, f"holds {path} whole, but .gitattributes leaves it to Git LFS")
    assert "steroids blocked" in submission.problem


def test_pointers_and_what_was_whole_before_are_taken(world: World) -> None:
    files = {"new.bag": POINTER, "there.bag": None, "old.bag": "still whole", "a.png": "whole", "no.bag": ""}
    assert kept_of(world, files).state == Submission.State.KEPT


def test_without_git_lfs_nothing_is_refused(world: World) -> None:
    run = world.coder()
    submission = world.hand_in(
        run, world.commit(run, {"new.bag": "whole", "sub/.gitattributes": "*.png -text"})
    )
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT
