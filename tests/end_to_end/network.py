"""Hosts with a network each and a wire to a hub that can be cut: packets are dropped then, never refused.

Nothing of it is seen outside of its own namespaces. They carry this process's number, and go at the end.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

HUB = "10.213.0.1"


def why_not() -> str:
    """Why this machine cannot have such networks; empty where it can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if shutil.which("ip") is None:
        return "there is no `ip` (Debian's package iproute2)"
    probe = f"steroids-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return f"no network namespace can be made here: {made.stderr.strip()}" if made.returncode else ""


class Network:
    """A hub with a bridge, and hosts on it."""

    def __init__(self) -> None:
        self.numbers = itertools.count(2)
        self.addresses: dict[str, str] = {}

    def name(self, host: str) -> str:
        """The namespace of a host, or of the hub."""
        return f"steroids-{os.getpid()}-{host}"

    def within(self, host: str) -> tuple[str, ...]:
        """The words before a command that is to run there."""
        return ("ip", "netns", "exec", self.name(host))

    def add_hub(self) -> None:
        """The bridge on which everybody meets."""
        self._add("hub")
        self._ip("hub", "link", "add", "bridge", "address", _mac(1), "type", "bridge")
        self._ip("hub", "address", "add", f"{HUB}/24", "dev", "bridge")
        self._ip("hub", "link", "set", "bridge", "up")

    def add(self, host: str) -> None:
        """A host with a wire to the hub. Their neighbours are fixed: who is cut off must not be told so."""
        number = next(self.numbers)
        self.addresses[host] = f"10.213.0.{number}"
        self._add(host)
        self._ip("hub", "link", "add", host, "type", "veth", "peer", "name", "wire", "address",
                 _mac(number), "netns", self.name(host))  # fmt: skip
        self._ip(host, "address", "add", f"{self.addresses[host]}/24", "dev", "wire")
        self._ip(host, "link", "set", "wire", "up")
        self._ip("hub", "link", "set", host, "master", "bridge", "up")
        for place, address, mac, device in (
            (host, HUB, _mac(1), "wire"), ("hub", self.addresses[host], _mac(number), "bridge"),
        ):  # fmt: skip
            self._ip(place, "neighbour", "replace", address, "lladdr", mac, "nud", "permanent", "dev", device)

    def cut(self, host: str) -> None:
        """Nothing passes either way, and nobody is told."""
        self._ip("hub", "link", "set", host, "down")

    def mend(self, host: str) -> None:
        """Everything passes again."""
        self._ip("hub", "link", "set", host, "up")

    def remove(self) -> None:
        """All of it; bridge and wires go with the namespaces."""
        for host in ("hub", *self.addresses):
            subprocess.run(["ip", "netns", "delete", self.name(host)], capture_output=True, check=False)

    def _add(self, host: str) -> None:
        subprocess.run(["ip", "netns", "add", self.name(host)], check=True)
        self._ip(host, "link", "set", "lo", "up")

    def _ip(self, host: str, *words: str) -> None:
        subprocess.run(["ip", "-netns", self.name(host), *words], check=True)


def _mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


@contextmanager
def network(hosts: Sequence[str]) -> Iterator[Network]:
    """Such a network while it is open."""
    made = Network()
    try:
        made.add_hub()
        for host in hosts:
            made.add(host)
        yield made
    finally:
        made.remove()
