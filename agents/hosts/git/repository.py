"""Core: a repository that no agent can write to, and the commits that the program makes there."""

import contextlib
import hashlib
import os
import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from agents.hosts import processes
from agents.hosts.git.commands import OUTPUT_MAX, SHA, GitError, next_object, run, text
from agents.hosts.git.memory import Log, Size, memory
from agents.hosts.git.pipes import refuse_pipes_in_tree
from disputes.protocol.text.diffs import CUT
from tasks.text.regex import regex

SALVAGED_FILE_MAX = 32 * 1024 * 1024  # bytes
DIFF_MAX = 4 * 1024 * 1024  # bytes of one diff
LOG_MAX = 1024 * 1024  # bytes of what is read of messages or names of a list of commits
COMMITS_TOLD = 20
AUTHOR_MAX, MESSAGE_MAX = 200, 1000  # characters
DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color")
REPACK_SECONDS = 1800.0
LOOSE_MAX, PACKS_MAX = 2000, 20  # loose objects and packs; with more, a repository is packed again
# Bytes of a name and of a link's target that disks hold, and of a path below the folder of a run.
NAME_MAX, LINK_MAX, PATH_MAX = 255, 4095, 3000
LISTED = 256  # bytes that a file takes in a listing, with a long path
# The modes of a path that now holds a commit of another repository.
ADDED_LINK = regex(r":(?!160000)\d+ 160000 ")
# The line of a diff that names a file's contents by their full hashes; people are shown the first digits.
LONG_INDEX = regex(r"(?m)^(index [0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*")
# The attributes that overrule those of a tree. Otherwise its author would choose by which of the host's
# converters git takes files apart, and what lies on the disk could be ten times what was measured.
AS_STORED = "* !working-tree-encoding !ident\n"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is in the text
UNKNOWN_COMMIT, NO_FILE = "Not a valid commit name", b"does not exist in"


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change touches.

    Of each file it holds the path and the lines added and removed, of which a binary file has 0. The links
    are the paths at which a commit of another repository lies that did not lie there before.
    """

    files: list[tuple[str, int, int]]
    links: list[str]


def inside(path: str) -> str:
    """Return the path as a commit has it, such as a/b for ./a//b; empty if it leads to nothing in there."""
    is_outside = path.startswith("/") or ".." in path.split("/")
    return "" if is_outside or (found := posixpath.normpath(path)) == "." else found


class Repository:
    """A bare repository of ours, whose commits are named by their hashes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_there(self) -> bool:
        return (self.path / "HEAD").exists()

    def resolve(self, name: str) -> str:
        """Return the commit that a name means. Raises GitError."""
        return text(self.path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def has(self, sha: str) -> bool:
        if not self.is_there():
            return False
        known = memory.present_in(self.path)
        if sha in known:
            return True
        is_here = run(self.path, "cat-file", "-e", f"{sha}^{{commit}}", ok=(0, 1, 128)).returncode == 0
        if is_here and SHA.match(sha):
            known.add(sha)
        return is_here

    def note(self, sha: str) -> None:
        """Remember that this commit is here, because it was just taken."""
        memory.present_in(self.path).add(sha)

    def forget(self) -> None:
        """Forget what this process knew about this repository, as something may be gone from it."""
        memory.forget(self.path)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` contains `old`, both given as full hashes. Raises GitError if one is unknown."""
        return self._fork(old, new) == old

    def contains(self, new: str, old: str) -> bool:
        """Whether `new` contains `old`; False if one is unknown. Raises GitError if git fails otherwise."""
        try:
            return self.is_ancestor(old, new)
        except GitError as error:
            if UNKNOWN_COMMIT in error.text:
                return False
            raise

    def merge_base(self, one: str, other: str) -> str:
        """Return the last commit that both contain. Raises GitError if there is none."""
        fork = self._fork(one, other)
        if not fork:
            raise GitError("git merge-base", f"{one[:12]} and {other[:12]} have no commit in common")
        return fork

    def _fork(self, one: str, other: str) -> str:
        known = memory.fork(one, other)
        if known is None:
            done = run(self.path, "merge-base", one, other, ok=(0, 1))
            known = done.stdout.decode().strip()
            memory.note_fork(one, other, known)
        return known

    def note_descent(self, old: str, new: str) -> None:
        """Remember that `new` was just made on top of `old`."""
        memory.note_fork(old, new, old)

    def keep(self, sha: str, ref: str) -> None:
        run(self.path, "update-ref", ref, sha)

    def refs(self, below: str) -> list[str]:
        """Return the full names of the refs below a name such as refs/steroids/submissions/."""
        return text(self.path, "for-each-ref", "--format=%(refname)", below).splitlines()

    def drop(self, refs: Sequence[str]) -> None:
        """Forget these refs. Raises GitError."""
        run(self.path, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in refs).encode())

    def is_scattered(self) -> bool:
        """Whether the repository has come to consist of many files. Raises GitError."""
        lines = text(self.path, "count-objects", "-v").splitlines()
        counted = {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}
        return counted["count"] >= LOOSE_MAX or counted["packs"] >= PACKS_MAX

    def repack(self, *, prune_days: float | None) -> None:
        """Pack everything into one pack; with `prune_days`, drop unreferenced objects older than that.

        Dropping is safe only while no clone borrows objects from here. Raises GitError.
        """
        self.forget()
        run(self.path, "pack-refs", "--all")
        if prune_days is None:
            run(self.path, "repack", "-a", "-d", "-k", "--quiet", timeout=REPACK_SECONDS)
        else:
            old = f"--prune={max(prune_days, 1):.0f}.days.ago"
            run(self.path, "gc", "--quiet", old, timeout=REPACK_SECONDS)

    def diff(
        self, base: str, sha: str, context: int = 3, limit: int = DIFF_MAX, only: Iterable[str] = ()
    ) -> str:
        """Return what changed, with `context` unchanged lines around it; very large files are only named.

        A change of more than `limit` bytes is cut there, and its last line says so. With `only`, other
        paths are left out.
        """
        paths = [f":(literal){path}" for path in only]
        done = run(
            self.path, *DIFF, "--find-renames", f"--unified={context}", base, sha, "--", *paths,
            limit=limit, may_cut=True,
        )  # fmt: skip
        return _diff_text(done.stdout, is_cut=done.is_cut)

    def changed(self, base: str, sha: str) -> Changes:
        """Return what a change touches; a file that was renamed is gone and another one is new."""
        raw = run(self.path, *DIFF, "--no-renames", "--raw", "--numstat", "-z", base, sha).stdout
        files, links = [], []
        entries = iter(raw.decode("utf-8", "replace").split("\0"))
        for entry in filter(None, entries):
            if entry.startswith(":"):
                path = next(entries)
                if ADDED_LINK.match(entry):
                    links.append(path)
            else:
                added, removed, path = entry.split("\t", 2)
                lines = (0, 0) if added == "-" else (int(added), int(removed))
                files.append((path, *lines))
        return Changes(files, links)

    def log(self, base: str, sha: str) -> Log:
        """Return the newest commits that `sha` has and `base` lacks, with who made them and why.

        Long messages are cut, and what follows the first megabyte is left out. All is taken as it is stored:
        a commit may name an encoding, and whoever chooses how git converts a text can make any part of it
        vanish. If one of them was made on top of `base`, it is known from then on that `sha` contains that.
        """
        if known := memory.logs.get((base, sha)):
            return known
        done = run(
            self.path, "log", "-z", f"--max-count={COMMITS_TOLD}", "--parents", "--format=raw",
            "--encoding=none", f"{base}..{sha}", limit=LOG_MAX, may_cut=True,
        )  # fmt: skip
        entries = [
            entry for entry in done.stdout.decode("utf-8", "replace").split("\0")
            if entry.startswith("commit ") and "\n" in entry
        ]  # fmt: skip
        if any(base in entry.partition("\n")[0].split()[2:] for entry in entries):
            self.note_descent(base, sha)
        is_all = len(entries) < COMMITS_TOLD and not done.is_cut
        count = len(entries) if is_all else int(text(self.path, "rev-list", "--count", f"{base}..{sha}"))
        told = Log([_told(entry) for entry in entries], count)
        memory.note_log(base, sha, told)
        return told

    def touched(self, base: str, sha: str) -> set[str]:
        """Return the paths that commits between these two changed, also those that a later one undid.

        If they fill more than a megabyte, the oldest are left out.
        """
        done = run(
            self.path, "log", "-z", "-m", "--format=", "--name-only", "--no-renames", f"{base}..{sha}",
            limit=LOG_MAX, may_cut=True,
        )  # fmt: skip
        paths = done.stdout.decode("utf-8", "replace").split("\0")
        return {path for path in (paths[:-1] if done.is_cut else paths) if path}

    def patch_id(self, base: str, sha: str, *, where_it_stands: bool = False) -> str:
        """Return a hash of the change itself, which is the same before and after a clean rebase.

        What counts is what the change adds and removes, not its place in the file and, unless
        `where_it_stands`, not the lines around it; for binary and very large files it is the hashes of their
        contents.
        """
        with self._patch(base, sha) as file:
            return _hash_of_change(file, with_surroundings=where_it_stands)

    def change(self, base: str, sha: str, limit: int) -> tuple[str, str]:
        """Return the `diff` and the `patch_id` of a change, reading it once."""
        with self._patch(base, sha) as file:
            with file.open("rb") as lines:
                raw = lines.read(limit + 1)
            told = _diff_text(raw[:limit], is_cut=len(raw) > limit)
            return LONG_INDEX.sub(r"\1..\2", told), _hash_of_change(file, with_surroundings=False)

    @contextlib.contextmanager
    def _patch(self, base: str, sha: str) -> Iterator[Path]:
        """Yield a temporary file with the whole change, which may be large."""
        file = self.path / f"patch-{uuid.uuid4().hex}.diff"
        try:
            run(
                self.path, *DIFF, "--find-renames", "--full-index", f"--output={file}", base, sha, timeout=120
            )
            yield file
        finally:
            file.unlink(missing_ok=True)

    def read(self, sha: str, path: str, limit: int) -> str | None:
        """Return the beginning of a file in a commit, up to `limit` bytes; None if there is no such file.

        Links in the repository are never followed.
        """
        if not (path := inside(path)):
            return None
        if known := memory.files.get((sha, path, limit)):
            return known[0]
        done = run(
            self.path, "cat-file", "blob", f"{sha}:{path}", ok=(0, 128), limit=limit, may_cut=True,
        )  # fmt: skip
        found = done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
        lacks_it = NO_FILE in done.stderr and sha in memory.present_in(self.path)  # else it may still come
        if (found is not None or lacks_it) and SHA.match(sha):
            memory.note_file(sha, path, limit, found)
        return found

    def read_all(self, sha: str, paths: Iterable[str], limit: int) -> dict[str, str]:
        """Return what `read` says of each of these files that the commit has, by one process if it can."""
        wanted = [inner for path in paths if (inner := inside(path)) and "\n" not in path]
        unknown = [path for path in wanted if (sha, path, limit) not in memory.files]
        found = self._read_at_once(sha, unknown, limit)
        told = {path: found[path] if path in found else self.read(sha, path, limit) for path in wanted}
        return {path: text for path, text in told.items() if text is not None}

    def _read_at_once(self, sha: str, paths: list[str], limit: int) -> dict[str, str | None]:
        """Read these files of a commit; none of them if a large one leaves no room for those behind it."""
        names = "".join(f"{sha}:{path}\n" for path in paths)
        most = len(paths) * (limit + len(names))
        if not paths:
            return {}
        done = run(self.path, "cat-file", "--batch", stdin=names.encode(), limit=most, may_cut=True)
        if done.is_cut:
            return {}
        found: dict[str, str | None] = {}
        raw, is_there = done.stdout, sha in memory.present_in(self.path)
        for path in paths:
            kind, content, raw = next_object(raw)
            found[path] = content[:limit].decode("utf-8", "replace") if kind == "blob" else None
            if SHA.match(sha) and (is_there or kind == "blob"):  # else it may still come
                memory.note_file(sha, path, limit, found[path])
        return found

    def touching(self, old: str, new: str, path: str) -> list[str]:
        """Return the commits that `new` has, `old` lacks and that changed this file, newest first."""
        return text(
            self.path, "log", "--format=%H", "--no-renames", f"{old}..{new}", "--", f":(top,literal){path}"
        ).splitlines()

    def names(self, sha: str) -> list[str]:
        """Return the paths at the top of a commit's tree."""
        return text(self.path, "ls-tree", "--name-only", sha).splitlines()

    def tree(self, sha: str, most: int) -> list[str]:
        """Return the paths of the first `most` files in a commit's tree."""
        raw = run(self.path, "ls-tree", "-r", "-z", "--name-only", sha).stdout
        return [path.decode("utf-8", "replace") for path in raw.split(b"\0", most)[:most] if path]

    def check_size(self, sha: str, most: Size) -> None:
        """Raise GitError if a checkout of the commit would have more files or bytes, or could not be made.

        What an agent wrote does not tell: a thousand files may be one object, and one may be compressed a
        thousand times. Git makes commits of paths that no disk holds, too.
        """
        size = memory.sizes.get(sha)
        if size is None:
            limit = max(most.files * LISTED, OUTPUT_MAX)
            done = run(self.path, "ls-tree", "-r", "-l", "-z", sha, limit=limit, may_cut=True)
            entries = [entry.partition(b"\t") for entry in done.stdout.split(b"\0")[:-1]]
            rows = [(*about.split(), path) for about, _, path in entries]
            unfit = next((path for mode, _, _, length, path in rows if not _fits(mode, length, path)), b"")
            size = Size(
                len(rows),
                sum(int(length) for _, _, _, length, _ in rows if length.isdigit()),
                unfit.decode("utf-8", "replace"),
            )
            if done.is_cut:
                size = replace(size, files=max(size.files, most.files + 1))
            else:
                memory.note_size(sha, size)
        if size.files > most.files:
            raise GitError(f"commit {sha[:12]}", f"holds more than {most.files:,} files")
        if size.bytes > most.bytes:
            raise GitError(f"commit {sha[:12]}", f"holds more than {most.bytes:,} bytes")
        if size.unfit:
            told = f"{size.unfit[:80]}…, whose name, path or target is longer than a disk can hold"
            raise GitError(f"commit {sha[:12]}", f"holds {told}")

    def commit_tree_of(self, folder: Path, parent: str, message: str) -> str | None:
        """Commit everything in an agent's work tree, using an index and a git folder of our own.

        Return the commit, or None if nothing differs from `parent`. Raises GitError.
        """
        refuse_pipes_in_tree(folder)
        (self.path / "info").mkdir(exist_ok=True)
        processes.write_whole(self.path / "info" / "attributes", AS_STORED.encode())
        with self._index_of(parent, GIT_WORK_TREE=str(folder)) as environment:
            left_out = [*self._links(environment), *_repositories_in(folder), *_too_large_in(folder)]
            paths = "\0".join([".", *(f":(exclude,top,literal){path}" for path in left_out)])
            run(
                folder, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul",
                stdin=paths.encode("utf-8", "surrogateescape"), environment=environment, timeout=120,
            )  # fmt: skip
            return self._commit(environment, parent, message)

    def is_plain_file(self, sha: str, path: str) -> bool:
        """Whether the path is a regular file in a commit, neither a link nor executable. Raises GitError."""
        return self._mode_of(sha, path) == b"100644"

    def is_file(self, sha: str, path: str) -> bool:
        """Whether the path is a file in a commit, and no link. Raises GitError."""
        return self._mode_of(sha, path).startswith(b"100")

    def _mode_of(self, sha: str, path: str) -> bytes:
        """Return what git calls the path's mode in a commit; empty if there is no such path."""
        done = run(self.path, "ls-tree", "-z", sha, "--", f":(top,literal){path}", ok=(0, 128))
        return done.stdout.partition(b" ")[0] if done.returncode == 0 else b""

    def filtered(self, sha: str, by: str, paths: Sequence[str]) -> list[str]:
        """Return which of these paths the attributes of a commit give to this filter. Raises GitError."""
        names = "\0".join(paths).encode("utf-8", "replace")
        with self._index_of(sha) as environment:
            told = run(
                self.path, "check-attr", "--cached", "-z", "--stdin", "filter",
                stdin=names, environment=environment,
            ).stdout  # fmt: skip
        words = told.decode("utf-8", "replace").split("\0")
        return [path for path, value in zip(words[0::3], words[2::3], strict=False) if value == by]

    def commit_files(
        self, parent: str, below: str, files: Mapping[str, str], message: str, at: datetime | None = None
    ) -> str | None:
        """Commit these files, given by their full paths, on `parent`, and remove all others below `below`.

        The commit is dated `at`, so that it is the same on every host, or at the present time if that is
        None. Return the commit, or None if nothing differs from `parent`. Raises GitError.
        """
        with self._index_of(parent) as environment:
            old = run(self.path, "ls-files", "-z", "--", f":(top,literal){below}/", environment=environment)
            gone = [name for name in old.stdout.decode("utf-8", "surrogateescape").split("\0") if name]
            entries = [f"0 {'0' * 40}\t{name}" for name in gone if name not in files]
            for name, words in files.items():
                blob = run(self.path, "hash-object", "-w", "--stdin", stdin=words.encode("utf-8", "replace"))
                entries.append(f"100644 {blob.stdout.decode().strip()}\t{name}")
            run(
                self.path, "update-index", "-z", "--index-info", environment=environment,
                stdin="".join(f"{entry}\0" for entry in entries).encode("utf-8", "surrogateescape"),
            )  # fmt: skip
            date = f"{int(at.timestamp())} +0000" if at else ""
            dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if at else {}
            return self._commit(environment | dates, parent, message)

    @contextlib.contextmanager
    def _index_of(self, parent: str, **more: str) -> Iterator[dict[str, str]]:
        """Yield an environment in which git uses a temporary index that holds what `parent` holds."""
        index = self.path / f"commit-{uuid.uuid4().hex}.index"
        environment = {"GIT_INDEX_FILE": str(index), "GIT_DIR": str(self.path), **more}
        try:
            run(self.path, "read-tree", parent, environment=environment)
            yield environment
        finally:
            index.unlink(missing_ok=True)

    def _commit(self, environment: dict[str, str], parent: str, message: str) -> str | None:
        tree = run(self.path, "write-tree", environment=environment).stdout.decode().strip()
        if tree == text(self.path, "rev-parse", f"{parent}^{{tree}}"):
            return None
        made = run(self.path, "commit-tree", tree, "-p", parent, "-m", message, environment=environment)
        return made.stdout.decode().strip()

    def _links(self, environment: dict[str, str]) -> Iterator[str]:
        """Yield the paths of submodules in that index. Files that lie there are not the repository's own."""
        listed = run(self.path, "ls-files", "--stage", "-z", environment=environment).stdout
        for entry in listed.split(b"\0"):
            if entry.startswith(b"160000 "):
                yield os.fsdecode(entry.partition(b"\t")[2])


def _fits(mode: bytes, length: bytes, path: bytes) -> bool:
    """Whether a disk can hold a file of a listing; most paths are too short for a second look."""
    if len(path) > NAME_MAX and (len(path) > PATH_MAX or max(map(len, path.split(b"/"))) > NAME_MAX):
        return False
    return mode != b"120000" or int(length) <= LINK_MAX


def _told(raw: str) -> dict[str, str]:
    """Return what a commit says, which git printed as it is stored, with its message indented."""
    headers, _, message = raw.partition("\n\n")
    first, *lines = headers.split("\n")
    named = [line.partition(" ") for line in lines]
    authors, committers = (
        _beginning("; ".join(_signed(said) for name, _, said in named if name == kind), AUTHOR_MAX)
        for kind in ("author", "committer")
    )
    words = "\n".join(line.removeprefix("    ") for line in message.split("\n"))
    message = _beginning(words.strip(), MESSAGE_MAX)
    return {"sha": first.split()[1], "author": authors, "committer": committers, "message": message}


def _signed(said: str) -> str:
    """Return a name and address with the day, or all as it is if no day can be read: old tools wrote much."""
    try:
        who, seconds, zone = said.rsplit(" ", 2)
        ahead = timedelta(hours=int(zone[:-2]), minutes=int(zone[0] + zone[-2:]))
        return f"{who}, {EPOCH + timedelta(seconds=int(seconds)) + ahead:%Y-%m-%d}"
    except (ValueError, OverflowError):
        return said


def _beginning(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[:most]}…"


def _diff_text(raw: bytes, *, is_cut: bool) -> str:
    text = raw.decode("utf-8", "replace")
    return text[: text.rfind("\n") + 1] + CUT if is_cut else text


def _hash_of_change(patch: Path, *, with_surroundings: bool) -> str:
    """Return the hash of what a patch adds and removes; empty for no patch."""
    digest, index, is_empty, before = hashlib.sha256(), b"", True, b""
    with patch.open("rb") as lines:
        for line in lines:
            is_empty, before = False, line if line[:1] != b"\\" else before
            if before.startswith(b" ") and not with_surroundings:
                continue
            if line.startswith(b"index "):
                index = line
            elif line.startswith(b"Binary files "):
                digest.update(index + line)
            elif not line.startswith((b"@@ ", b"similarity index ", b"dissimilarity index ")):
                digest.update(line)
    return "" if is_empty else digest.hexdigest()


def _repositories_in(folder: Path) -> list[str]:
    """Return the repositories inside a work tree, in which git would run with the settings they bring."""
    found = []
    for name, folders, files in os.walk(folder):
        if Path(name) != folder and (".git" in folders or ".git" in files):
            found.append(os.path.relpath(name, folder))
            folders.clear()
        elif ".git" in folders:
            folders.remove(".git")
    return found


def _too_large_in(folder: Path) -> Iterator[str]:
    """Yield the files that are more likely a core dump than work; each would be read, packed and kept."""
    for name, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for file in files:
            path = os.path.join(name, file)
            with contextlib.suppress(OSError):
                if os.lstat(path).st_size > SALVAGED_FILE_MAX:
                    yield os.path.relpath(path, folder)
