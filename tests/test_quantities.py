"""Single values: what is read, what is refused, and that what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.quantities import (
    DURATION,
    SIZE,
    Boolean,
    Expression,
    OneOf,
    Real,
    Rule,
    Secret,
    Text,
    Whole,
    nearest,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("1d 2h", 93_600.0),
        (" 7 ", 7.0),
        ("0.5", 0.5),
        (0, 0.0),
        (2.5, 2.5),
        ("0s", 0.0),
    ],
)
def test_durations_are_read_as_they_are_written(text: object, seconds: float) -> None:
    """Units add up; a plain number, or digits, are seconds."""
    assert DURATION.read(text) == seconds


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("64KiB", 65_536), ("1.5MiB", 1_572_864), ("1GiB", 1 << 30), ("10B", 10), (512, 512), ("512", 512)],
)
def test_sizes_are_read_as_they_are_written(text: object, bytes_: int) -> None:
    """Sizes count in 1024s, and are whole."""
    found = SIZE.read(text)

    assert (found, type(found)) == (bytes_, int)


@pytest.mark.parametrize(
    ("rule", "raw"),
    [
        (DURATION, "10 min"),
        (DURATION, "-1s"),
        (DURATION, -1),
        (DURATION, "1h30"),
        (DURATION, ""),
        (DURATION, True),
        (DURATION, None),
        (DURATION, [1]),
        (DURATION, float("nan")),
        (DURATION, "9" * 400 + "d"),
        (SIZE, "1.5B"),
        (SIZE, "1KB"),
        (SIZE, 0.5),
        (Real(), "inf"),
        (Real(), "a"),
        (Real(0, 1), 1.01),
        (Real(0, 1), -0.01),
        (Whole(1), 0),
        (Whole(1), "1.5"),
        (Whole(1), 1.5),
        (Whole(1), False),
        (Whole(1, 9), 10),
        (Boolean(), "yes"),
        (Boolean(), 1),
        (Text(), ""),
        (Text(), " "),
        (Text(), 1.1),
        (OneOf(("a", "b")), "c"),
        (OneOf(("a", "b")), ["a"]),
        (Expression(), "("),
        (Expression(), ""),
        (Expression(), 3),
        (Secret(), "zz" * 20),
        (Secret(), "ab" * 15),
        (Secret(), "a" * 33),
    ],
)
def test_what_is_not_allowed_is_refused(rule: Rule, raw: object) -> None:
    """A refusal is one of the errors that `loading` turns into a message; nothing is guessed."""
    with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError)):
        rule.read(raw)
    assert rule.allowed
    assert rule.advice(raw)


@pytest.mark.parametrize(
    ("rule", "raw", "value"),
    [
        (Whole(1), "100", 100),
        (Whole(1), 3.0, 3),
        (Real(0, 1), 1, 1.0),
        (Boolean(), "TRUE", True),
        (Boolean(), False, False),
        (Text(), " a ", "a"),
        (OneOf(("a", "b")), "b", "b"),
        (Expression(), r"^\d+$", r"^\d+$"),
        (Secret(), "ab" * 16, "ab" * 16),
    ],
)
def test_what_is_allowed_is_converted(rule: Rule, raw: object, value: object) -> None:
    """Values come out in their own type, whether they came as text or not."""
    found = rule.read(raw)

    assert (found, type(found)) == (value, type(value))


@given(st.integers(0, 10**12).map(lambda milliseconds: milliseconds / 1000) | st.floats(0, 1e12))
def test_a_written_duration_is_read_back(seconds: float) -> None:
    """`read` undoes `write` exactly."""
    assert DURATION.read(DURATION.write(seconds)) == seconds


@given(st.integers(0, 1 << 50))
def test_a_written_size_is_read_back(size: int) -> None:
    """`read` undoes `write` exactly."""
    assert SIZE.read(SIZE.write(size)) == size


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.integers()))
def test_no_value_breaks_a_rule(raw: object) -> None:
    """Whatever comes is read or refused; nothing else is raised."""
    for rule in (DURATION, SIZE, Real(), Whole(), Boolean(), Text(), OneOf(("a",)), Expression(), Secret()):
        try:
            value = rule.read(raw)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
        assert rule.read(value) == value


def test_a_secret_is_not_shown() -> None:
    """A message tells a secret's length, not the secret."""
    assert Secret().shown("hunter2") == "(7 characters, not shown)"


def test_the_nearest_words_are_named() -> None:
    """A misspelling gets the nearest words; a strange word gets all if they are few, else the nearest there are."""
    many = [f"word{index}" for index in range(20)]

    assert nearest("word1", ["word1x", "other"]) == "the nearest is word1x"
    assert nearest("zzz", ["linger", "reopen"]) == "take one of linger, reopen"
    assert nearest("zzz", many).startswith("the nearest are word")


def test_bounds_are_told() -> None:
    """The allowed range, and an example within it."""
    assert (Whole(1).allowed, Whole(1).remedy) == ("a whole number of at least 1", "write it like 1")
    assert (Real(0, 100).allowed, Real(0, 100).remedy) == ("a number from 0 to 100", "write it like 50")
    assert (Real().allowed, Real().remedy) == ("a number", "write it like 1")
