"""What an address in the environment becomes."""

from typing import Any

from steroidsweb.env import GONE, database


def test_a_connection_whose_packets_vanish_has_an_end_on_both_sides() -> None:
    """As they ship, the locks of a host that lost power are held for two hours."""
    here: Any = database("postgres://ann:pw@db.example.org/steroids")["OPTIONS"]
    there = dict(word.split("=") for word in here["options"].split() if word != "-c")
    for side, prefix in ((here, ""), (there, "tcp_")):
        idle, interval, count = (int(side[f"{prefix}keepalives_{word}"]) for word in
                                 ("idle", "interval", "count"))  # fmt: skip
        assert idle + interval * count == GONE
        assert int(side["tcp_user_timeout"]) == GONE * 1000
    assert int(here["connect_timeout"]) < GONE


def test_what_the_address_says_comes_first() -> None:
    asked: Any = database("postgres://ann@/steroids?host=/run/pg&tcp_user_timeout=0&options=&sslmode=require")
    assert asked["HOST"] == "/run/pg"
    assert {name: asked["OPTIONS"][name] for name in ("tcp_user_timeout", "options", "sslmode")} == {
        "tcp_user_timeout": "0", "options": "", "sslmode": "require",
    }  # fmt: skip
