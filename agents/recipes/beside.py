"""Core: the servers that a repository's own continuous integration starts beside its tests."""

from collections.abc import Iterator
from typing import Any

from agents.recipes.services import JOBS, load
from agents.recipes.tree import Tree, at, table
from tasks.text.counting import enumerated
from tasks.text.regex import regex

FILES = 8  # files read
MOST = 4  # servers that a sentence names
IMAGE = regex(r"(?:[\w.:-]{1,100}/){0,5}([a-z0-9][\w.-]{1,40})(?::[\w.-]{1,60})?(?:@[\w:]{1,80})?")
# What a client says that found nobody, whatever its words for the server.
IN_VAIN = regex(
    r"(?i)connection (?:was )?refused|econnrefused|enotfound"
    r"|(?:could|can)(?: ?not|n't) (?:be )?(?:connect|reach|resolve)"
    r"|failed to connect|name or service not known|temporary failure in name resolution|getaddrinfo"
    r"|connect(?:ion)? ?(?:error|timed out|timeout)|no connection could be made|unknown host"
)


def lacking(tree: Tree, output: str) -> str:
    """Return a sentence about the servers that CI starts, if the output of red tests says that they lack one.

    It is empty if nothing was asked in vain, or if CI starts no server.
    """
    if not IN_VAIN.search(output):
        return ""
    found = dict(_servers(tree))
    if not found:
        return ""
    names, file = list(found)[:MOST], next(iter(found.values()))
    return (
        f"The repository's own CI starts {enumerated(names)} beside its tests ({file})."
        " Here only the commands can: let them start what the tests need."
    )


def _servers(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the name of each server and the file that starts it."""
    rows = (
        (r"\.github/workflows/[^/]+\.ya?ml", _github),
        (r"\.gitlab-ci\.ya?ml", _gitlab),
        (r"\.travis\.ya?ml", _travis),
        (r"\.circleci/config\.ya?ml", _circle),
    )
    for pattern, read in rows:
        for path in tree.matching(pattern)[:FILES]:
            for said in read(load(tree.text(path))):
                name = IMAGE.fullmatch(said)
                if name:
                    yield name[1], path


def _github(data: dict[str, Any]) -> Iterator[str]:
    for job in list(table(data.get("jobs")).values())[:JOBS]:
        for key, service in table(at(job, "services")).items():
            image = at(service, "image")
            yield image if isinstance(image, str) and IMAGE.fullmatch(image) else key


def _gitlab(data: dict[str, Any]) -> Iterator[str]:
    for job in (data, *list(data.values())[:JOBS]):
        yield from _listed(at(job, "services"), "name")


def _travis(data: dict[str, Any]) -> Iterator[str]:
    services = data.get("services")
    listed = [services] if isinstance(services, str) else services
    yield from (name for name in _listed(listed, "name") if name != "docker")


def _circle(data: dict[str, Any]) -> Iterator[str]:
    for job in list(table(data.get("jobs")).values())[:JOBS]:
        images = at(job, "docker")
        beside = images[1:] if isinstance(images, list) else None  # the first one runs the job
        yield from _listed(beside, "image")


def _listed(value: object, key: str) -> Iterator[str]:
    for item in value if isinstance(value, list) else []:
        said = at(item, key) if isinstance(item, dict) else item
        if isinstance(said, str):
            yield said
