"""Submodules: fetched by the trusted side from what the target branch names, never from what agents wrote."""

import shutil
from pathlib import Path

import pytest

from agents.hosts import paths, starting, submissions, submodules
from agents.hosts.git import commands as plain
from agents.hosts.git.commands import GitError
from agents.hosts.git.remotes import Network
from tasks.models import Submission
from tests.agents.world import Remote, World, commit, git, hook, import_commit, make_world, write  # noqa: F401
from tests.factories import create_host, create_run

pytestmark = pytest.mark.django_db


def module(folder: Path, name: str) -> tuple[Path, str]:
    """Another bare repository beside the remote, with one commit."""
    path = folder / name
    git(folder, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(path))
    import_commit(path, {"lib.py": f"# {name}\n"}, "First")
    return path, git(path, "rev-parse", "main")


def name_modules(world: World, modules: dict[str, tuple[str, str]]) -> str:
    """A commit on main whose tree has these: a path, its address and its commit."""
    bare = world.remote.path
    index = {"GIT_INDEX_FILE": str(bare / "modules.index")}
    git(bare, "read-tree", "main", **index)
    text = "".join(
        f'[submodule "{number}"]\n\tpath = {path}\n\turl = {url}\n'
        for number, (path, (url, _)) in enumerate(modules.items())
    )
    blob = git(bare, "hash-object", "-w", "--stdin", stdin=text)
    git(bare, "update-index", "--add", "--cacheinfo", f"100644,{blob},.gitmodules", **index)
    for path, (_, sha) in modules.items():
        git(bare, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}", **index)
    tree = git(bare, "write-tree", "--missing-ok", **index)
    made = git(bare, "commit-tree", tree, "-p", "main", "-m", "Modules")
    git(bare, "update-ref", "refs/heads/main", made)
    world.mirror.fetch_target()
    return made


def prepared(world: World, sha: str, role: str = "verifier") -> Path:
    """The clone of a run as its host makes it ready."""
    run = create_run(world.task(), role=role, sha=sha, host=create_host())
    starting.prepare(run)
    return paths.clone_of(run)


def said(clone: Path) -> str:
    log = clone.parent / "output.log"
    return log.read_text() if log.exists() else ""


def test_a_run_has_the_submodules_of_its_commit(world: World, tmp_path: Path) -> None:
    inner, inner_sha = module(tmp_path, "inner.git")
    lib, first = module(tmp_path, "lib.git")
    text = git(
        lib, "hash-object", "-w", "--stdin", stdin='[submodule "i"]\n\tpath = in\n\turl = ../inner.git\n'
    )
    readme = git(lib, "rev-parse", "main:lib.py")
    listing = (
        f"100644 blob {text}\t.gitmodules\n160000 commit {inner_sha}\tin\n100644 blob {readme}\tlib.py\n"
    )
    second = git(lib, "commit-tree", git(lib, "mktree", "--missing", stdin=listing), "-p", first, "-m", "Two")
    git(lib, "update-ref", "refs/heads/main", second)
    head = name_modules(world, {"vendor/lib": ("../lib.git", second), "old": (str(lib), first)})
    clone = prepared(world, head)
    assert (clone / "vendor/lib/lib.py").read_text() == "# lib.git\n"
    assert (clone / "vendor/lib/in/lib.py").read_text() == "# inner.git\n"
    assert (clone / "old/lib.py").read_text() == "# lib.git\n"
    assert git(clone, "status", "--porcelain") == ""
    assert said(clone) == ""
    shutil.rmtree(lib)  # what is here once is not fetched again
    assert (prepared(world, head) / "vendor/lib/lib.py").exists()


def test_a_submodule_that_cannot_be_had_is_named_and_stops_nobody(world: World, tmp_path: Path) -> None:
    lib, first = module(tmp_path, "lib.git")
    head = name_modules(
        world,
        {"gone": ("../gone.git", "1" * 40), "unpushed": ("../lib.git", "2" * 40), "lib": (str(lib), first)},
    )
    clone = prepared(world, head)
    assert (clone / "lib/lib.py").exists()
    assert list((clone / "gone").iterdir()) == list((clone / "unpushed").iterdir()) == []
    lines = said(clone).splitlines()
    assert lines[0].startswith("submodule gone at ../gone.git is not there: git fetch: fatal:")
    assert any(line.startswith("submodule unpushed at ../lib.git is not there") for line in lines)
    assert git(clone, "status", "--porcelain") == ""
    again = said(prepared(world, head))  # not asked for again at once
    assert "submodule gone at ../gone.git is not there: git fetch: fatal:" in again


def test_a_host_fetches_no_address_that_only_an_agent_named(world: World, tmp_path: Path) -> None:
    lib, first = module(tmp_path, "lib.git")
    secret, hidden = module(tmp_path, "secret.git")
    name_modules(world, {"lib": ("../lib.git", first)})
    run = world.coder()
    clone = paths.clone_of(run)
    text = (clone / ".gitmodules").read_text().replace("../lib.git", "../secret.git")
    write(clone, {".gitmodules": text + '[submodule "new"]\n\tpath = new\n\turl = ../secret.git\n'})
    git(clone, "update-index", "--add", "--cacheinfo", f"160000,{hidden},new")
    git(clone, "update-index", "--add", "--cacheinfo", f"160000,{hidden},lib")
    git(clone, "add", ".gitmodules")
    git(clone, "commit", "--quiet", "--message", "Mine")
    submission = world.hand_in(run, git(clone, "rev-parse", "HEAD"))
    submissions.keep(submission, run)
    submission.refresh_from_db()
    assert submission.state == Submission.State.KEPT, submission.problem
    checked = prepared(world, submission.sha)
    assert list((checked / "lib").iterdir()) == list((checked / "new").iterdir()) == []
    assert said(checked).count("is not the one that the target branch names") == 2
    assert secret.exists()


def test_a_hostile_gitmodules_leads_nowhere(world: World, tmp_path: Path) -> None:
    lib, first = module(tmp_path, "lib.git")
    marker = tmp_path / "marker"
    hidden = module(world.settings.HOME, "hidden.git")[0]
    urls = {
        "a": f"ext::touch% {marker}", "b": f"file://{hidden}", "c": str(hidden), "d": "../home/hidden.git",
        "e": "../" * 40 + "etc", "f": "lib.git", "g": "ssh://-oProxyCommand=touch/x", "h": "$(touch x)",
        ".gitx/i": "../lib.git",
    }  # fmt: skip
    for number in range(60):
        urls[f"many/{number}"] = "../lib.git"
    head = name_modules(world, {path: (url, first) for path, url in urls.items()})
    clone = prepared(world, head)
    there = {str(path.parent.relative_to(clone)) for path in clone.rglob("lib.py") if path.parent != clone}
    assert 0 < len(there) <= submodules.MODULES_MAX
    assert all(path.startswith("many/") for path in there)
    assert "the limit of 50" in said(clone)
    assert "is in the data folder" in said(clone)
    assert not marker.exists()


def test_the_operators_rights_are_for_the_projects_own_host(tmp_path: Path) -> None:
    ours = Network(("https", "ssh", "file"), 9.0, tmp_path / "credentials", {"SSH_AUTH_SOCK": "/agent"})
    base = "https://git.example.org/team/app.git"
    same = submodules.network_for("https://git.example.org/x.git", base, ours, tmp_path)
    assert (same.credentials, same.environment) == (ours.credentials, ours.environment)
    assert same.protocols == ("https", "ssh")
    for url in (
        "https://git.example.org.evil.example/x",
        "git@other:x.git",
        "https://git.example.org@evil/x",
    ):
        other = submodules.network_for(url, base, ours, tmp_path)
        assert (other.credentials, other.environment) == (None, {"HOME": "/nonexistent"})
    for url in ("/srv/x.git", "file:///srv/x.git", "FILE:///srv/x.git"):
        with pytest.raises(GitError, match="is a path of this machine"):
            submodules.network_for(url, base, ours, tmp_path)
    found = {
        ("../lib.git", base): "https://git.example.org/team/lib.git",
        ("../../x/lib.git", base): "https://git.example.org/x/lib.git",
        ("./lib.git", "git@h:team/app.git"): "git@h:team/app.git/lib.git",
        ("../lib.git", "git@h:team/app.git"): "git@h:team/lib.git",
        ("../lib.git", "file:///srv/app.git"): "file:///srv/lib.git",
        ("../lib.git", "/srv/git/app.git/"): "/srv/git/lib.git",
    }  # fmt: skip
    assert {asked: submodules.address(*asked) for asked in found} == found
    for url in ("../../../x", "x", "", "-x", "a b", "ext::x", "../x\n"):
        with pytest.raises(GitError):
            submodules.address(url, base)


def test_a_repository_within_the_repository_is_sent_back_unless_gitmodules_names_it(
    world: World, tmp_path: Path
) -> None:
    """Nobody but its coder would have its files."""
    lib, first = module(tmp_path, "lib.git")
    head = name_modules(world, {"lib": ("../lib.git", first), "loose": ("", "1" * 40)})
    world.mirror.fetch_target()
    named = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'
    also = named + '[submodule "inner"]\n\tpath = inner\n\turl = ../inner.git\n'
    for what, modules, link, problem in (
        ("a new one", named, "inner", "holds inner as a repository of its own"),
        ("a new one with a name", also, "inner", ""),
        ("another commit of an old one", named, "lib", ""),
        ("another commit of one that never had a name", named, "loose", ""),
        ("none", named, "", ""),
    ):
        run = world.coder()
        clone = paths.clone_of(run)
        write(clone, {".gitmodules": modules, "one.py": "one line\n"})
        if link:
            git(clone, "update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},{link}")
        git(clone, "add", ".gitmodules", "one.py")
        git(clone, "commit", "--quiet", "--message", "Work")
        submission = world.hand_in(run, git(clone, "rev-parse", "HEAD"))
        submissions.keep(submission, run)
        submission.refresh_from_db()
        assert (problem in submission.problem) if problem else submission.state == "kept", what
        assert bool(submission.problem) is bool(problem), what
    assert plain.SHA.match(head)


def test_a_coder_neither_loses_a_submodule_nor_turns_it_into_files(world: World, tmp_path: Path) -> None:
    lib, first = module(tmp_path, "lib.git")
    head = name_modules(world, {"lib": ("../lib.git", first), "gone": ("../gone.git", "1" * 40)})
    world.mirror.fetch_target()
    for spoil in ("keep", "unpack", "empty", "remove"):
        run = world.coder()
        clone = paths.clone_of(run)
        submodules.check_out(world.mirror, clone, head, world.settings.HOME, paths.largest_checkout())
        made = commit(clone, {f"{spoil}.py": "x\n"})
        links = git(clone, "ls-tree", made, "lib", "gone")
        assert links.count("160000 commit") == 2
        if spoil == "unpack":
            shutil.rmtree(clone / "lib" / ".git")
        if spoil in {"empty", "remove"}:
            shutil.rmtree(clone / "lib")
        if spoil == "empty":
            (clone / "lib").mkdir()
        write(clone, {"half.py": "half\n"})
        saved = submissions.salvage(run)
        assert world.mirror.read(saved, "half.py", 100) == "half\n"
        assert git(world.mirror.path, "ls-tree", saved, "lib", "gone") == links
    assert plain.SHA.match(head)
