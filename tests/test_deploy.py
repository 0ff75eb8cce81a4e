"""What operators are told and given: units, the compose file and docs/operate.md name what there is."""

import ast
import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from django.core.management import get_commands

from tests.sources import ROOT, nodes, variables

DEPLOY = ROOT / "examples" / "deploy"
OPERATE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")


def unit(path: Path) -> dict[str, list[str]]:
    """The keys of a unit's parts, each with its values: systemd lets one stand several times."""
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",), dict_type=_Several
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return {key: value.split("\n") for part in parser.sections() for key, value in parser[part].items()}


class _Several(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and isinstance(self.get(key), list):
            value = self[key] + value
        super().__setitem__(key, value)


def strings(path: Path) -> set[str]:
    """All that stands in quotes in a module."""
    return {
        node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_a_unit_that_starts_agents_ends_no_shim() -> None:
    units = {path.name: unit(path) for path in DEPLOY.glob("*.service")}
    holding = {name: keys for name, keys in units.items() if "run_orchestrator" in str(keys["ExecStart"])}
    assert sorted(holding) == ["steroids-host.service", "steroids.service"]
    for name, keys in holding.items():
        assert keys["KillMode"] == ["process"], name
        assert keys["UMask"] == ["0077"], name
    assert set(unit(DEPLOY / "steroids-backup.timer")) >= {"OnCalendar", "Persistent"}


def test_commands_and_their_options_exist() -> None:
    texts = [OPERATE, *(path.read_text() for path in DEPLOY.iterdir())]
    named = {command for text in texts for command in re.findall(r"manage\.py ([a-z][a-z_]+)", text)}
    assert named - set(get_commands()) == set()
    assert {"doctor", "backup", "restore", "prune"} <= named


def test_every_variable_that_is_named_is_read() -> None:
    """By the settings, which another test holds docs/settings.md to, or by what the program starts."""
    given = re.findall(r"^#?([A-Z][A-Z_]+)=", (DEPLOY / "environment").read_text(), re.MULTILINE)
    named = [(name, "environment") for name in given]
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        told = re.findall(
            r"\b(?:STEROIDS_|SECURE_|HSTS_|ALLOWED_|CSRF_)[A-Z_]+\b", path.read_text(encoding="utf-8")
        )
        named += [(name, path.name) for name in told]
    started = {text for path in sorted((ROOT / "agents").rglob("*.py")) for text in strings(path)}
    known = {*variables(), *started}
    assert given
    assert len({place for _, place in named}) > 5
    assert [
        each for each in named if each[0].removesuffix("_FILE") not in known and each[0] not in known
    ] == []


def test_what_the_compose_file_opens_is_open_to_this_machine_alone() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert sorted(services) == ["postgres", "redis"]
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert "PASSWORD:-" not in str(service)  # no password of ours


def test_files_that_the_document_names_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", OPERATE)
    written_beside = {"hosts.md"}
    missing = [link for link in links if not (ROOT / "docs" / link).resolve().exists()]
    assert set(missing) <= written_beside
    lines = re.findall(r"^ +(?:sudo|cp|install).*$", OPERATE, re.MULTILINE)
    assert all(shlex.split(line) for line in lines)


def test_what_is_installed_is_locked_with_hashes_and_names_no_registry() -> None:
    for name in ("requirements", "requirements-dev"):
        lock = (ROOT / f"{name}.txt").read_text()
        entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in entry for entry in entries)
        assert "://" not in lock
        assert "--index-url" not in lock
        asked = (ROOT / f"{name}.in").read_text()
        for package, version in re.findall(r"^([A-Za-z0-9_-]+)(?:\[\w+\])?==([^ ;\n]+)", asked, re.MULTILINE):
            assert f"{package.lower().replace('_', '-')}=={version} " in lock, package
    assert re.search(r"^pysqlite3==\S+ ; .*linux", (ROOT / "requirements.txt").read_text(), re.MULTILINE)


def test_the_key_is_made_in_the_data_folder_of_the_environment(tmp_path: Path) -> None:
    """As docs/operate.md sets a service up: the commands after it look there and nowhere else."""
    venv, home = tmp_path / "venv", tmp_path / "data folder"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "manage.py").write_text("")
    make = ["make", "--silent", "-f", ROOT / "Makefile", f"VENV={venv}", "-o", f"{venv}/.installed", "setup"]
    bare = {"PATH": os.environ["PATH"]}
    for more, key in (
        ({}, tmp_path / "var" / "secret-key"),
        ({"STEROIDS_HOME": str(home), "SECRET_KEY_FILE": "/etc/steroids/secret-key"}, None),
        ({"STEROIDS_HOME": str(home)}, home / "secret-key"),
    ):
        before = set(tmp_path.rglob("secret-key"))
        subprocess.run(make, cwd=tmp_path, env=bare | more, check=True)
        assert set(tmp_path.rglob("secret-key")) - before == ({key} if key else set())
        if key is not None:
            made = key.read_text()
            assert len(made) > 32
            assert (key.stat().st_mode | key.parent.stat().st_mode) & 0o077 == 0
            subprocess.run(make, cwd=tmp_path, env=bare | more, check=True)
            assert key.read_text() == made
