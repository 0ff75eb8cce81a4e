"""How many of something, as one says it."""

from tasks.text.counting import counted, shortened, some_of


def test_one_is_not_said_as_many() -> None:
    assert [counted(count, "finding") for count in range(3)] == ["0 findings", "1 finding", "2 findings"]


def test_of_many_names_the_first_few_are_said() -> None:
    names = ["Lea", "Tom", "Vera"]

    assert [some_of(names, most) for most in (1, 2, 3)] == [
        "Lea and 2 more",
        "Lea, Tom and 1 more",
        "Lea, Tom, Vera",
    ]
    assert some_of([], 3) == ""


def test_a_long_text_is_cut_between_words_unless_one_is_very_long() -> None:
    assert [shortened("Round half up", most) for most in (13, 12, 11, 10, 7)] == [
        "Round half up",
        "Round half…",
        "Round half…",
        "Round…",
        "Round…",
    ]
    assert shortened("A " + "x" * 40, 20) == "A " + "x" * 17 + "…"
