"""Structs from mappings, text and the environment, shown on a struct that has a field of every
kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from msgspec import Struct

from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import Count, HexKey, Seconds, Text, fields, load, load_environment


class Part(Struct, frozen=True):
    """A section, with two fields that must go together."""

    name: Text = "front"
    width: float = 1.0
    locked_after: Seconds | None = None
    open: bool = False

    def __post_init__(self) -> None:
        if self.open and self.locked_after:
            raise ConfigurationError("open", True, "true together with locked_after", "use one")


class Whole(Struct, frozen=True):
    """A field of every kind."""

    front: Part = Part()
    parts: tuple[Part, ...] = ()
    colours: tuple[Text, ...] = ("white",)
    rooms: Count = 3
    lights: Literal["on", "off"] = "off"
    heights: Mapping[str, Seconds] = {}
    key: HexKey | None = None


def message(*args: Any, **options: Any) -> str:
    with pytest.raises(ConfigurationError) as error:
        load(Whole, *args, **options)
    return str(error.value)


def test_absent_fields_are_taken_from_the_base() -> None:
    base = Whole(front=Part("back", 2.0), colours=("red", "blue"), rooms=5)

    found = load(Whole, {"front": {"width": "2.5"}, "colours": ["green"]}, base=base)

    assert found == Whole(front=Part("back", 2.5), colours=("green",), rooms=5)


def test_the_same_value_is_read_from_every_form() -> None:
    expected = Whole(parts=(Part("a", open=True),), colours=("red", "[ab]*"), heights={"x=y": 60.0})
    forms: list[Any] = [
        {
            "parts": [{"name": "a", "open": True}],
            "colours": ["red", "[ab]*"],
            "heights": {"x=y": 60},
        },
        {"parts": '[{"name": "a", "open": "true"}]', "colours": "red, [ab]*", "heights": "x=y=1m"},
        {
            "colours": '["red", "[ab]*"]',
            "heights": '{"x=y": "1m"}',
            "parts": [Part("a", open=True)],
        },
        expected,
    ]
    assert [load(Whole, form) for form in forms] == [expected] * 4


def test_the_environment_sets_every_field() -> None:
    env = {
        "W_FRONT_NAME": "side",
        "W_FRONT_LOCKED_AFTER": "5m",
        "W_COLOURS": "red,blue",
        "W_ROOMS": "",
        "W_LIGHTS": "on",
        "W_STATE": "ours, but no setting",
        "PATH": "/bin",
    }
    found = load_environment(Whole, env, "W_", base=Whole(rooms=4), others={"W_STATE"})

    assert found == Whole(
        front=Part("side", locked_after=300.0), colours=("red", "blue"), rooms=4, lights="on"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("1h30m", 5400.0), ("2d", 172_800.0), ("1.5m", 90.0), ("10", 10.0)],
)
def test_durations_have_units_or_are_seconds(text: str, seconds: float) -> None:
    assert load(Part, {"locked_after": text}).locked_after == seconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"front": {"locked_after": []}},
            "front.locked_after: [] is not a duration; write it like 10m, 1h30m or 250ms.",
        ),
        ({"room": 1}, "room: 'room' is not a setting; the nearest is rooms."),
        ({"front": {"widht": 1}}, "front.widht: 'widht' is not a setting; the nearest is width."),
        ({"front": 3}, "front: 3 is not a mapping of settings; write it like {name: value}."),
        ({"rooms": 0}, "rooms: 0 is not a whole number >= 1; give a whole number >= 1."),
        ({"rooms": None}, "rooms: None is not a whole number >= 1; give a whole number >= 1."),
        ({"lights": "of"}, "lights: 'of' is not one of off, on; the nearest is off."),
        ({"colours": 3}, "colours: 3 is not a list; write one, with brackets or dashes."),
        ({"colours": ["red", 3]}, "colours[1]: 3 is not text; quote it if it looks like a number."),
        ({"heights": ["a"]}, "heights: ['a'] is not a mapping; write it like {name: value}."),
        ({"heights": "a"}, "heights: 'a' is not a mapping; write it like name=value, name=value."),
        (
            {"heights": {"a": "tall"}},
            "heights[a]: 'tall' is not a duration; write it like 10m, 1h30m or 250ms.",
        ),
        (
            {"parts": [{}, {"width": "1 m"}]},
            "parts[1].width: '1 m' is not a number; give a number.",
        ),
        (
            {"parts": [{"open": True, "locked_after": 1}]},
            "parts[0].open: True is not true together with locked_after; use one.",
        ),
    ],
)
def test_an_error_names_field_value_and_remedy(given: Mapping[str, object], expected: str) -> None:
    assert message(given) == expected


def test_a_secret_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as error:
        load(Whole, {"key": "hunter2hunter2"})

    assert "hunter2" not in str(error.value)
    assert (error.value.__cause__, error.value.__suppress_context__) == (None, True)


def test_an_error_names_the_variable_it_came_from() -> None:
    with pytest.raises(ConfigurationError, match=r"^W_FRONT_WIDTH: 'wide' is not a number"):
        load_environment(Whole, {"W_FRONT_WIDTH": "wide"}, "W_")
    with pytest.raises(
        ConfigurationError, match=r"^W_ROOM: .* is not a setting; the nearest (is|are) W_ROOMS"
    ):
        load_environment(Whole, {"W_ROOM": "1"}, "W_")


def test_dependent_fields_are_checked_across_sources() -> None:
    with pytest.raises(
        ConfigurationError, match=r"open: True is not true together with locked_after"
    ):
        load_environment(
            Whole, {"W_FRONT_LOCKED_AFTER": "1m"}, "W_", base=Whole(front=Part(open=True))
        )


def test_all_settings_are_listed() -> None:
    assert [(one.path, one.default) for one in fields(Whole)][:6] == [
        ("front.name", "front"),
        ("front.width", 1.0),
        ("front.locked_after", None),
        ("front.open", False),
        ("parts", ()),
        ("colours", ("white",)),
    ]
