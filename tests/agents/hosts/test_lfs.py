"""Files that Git LFS keeps elsewhere: only pointers are in a clone, and that is said."""

import os

import pytest

from agents.hosts import lfs
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
