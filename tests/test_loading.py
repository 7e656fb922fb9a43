"""Dataclasses from mappings, text and the environment, shown on a dataclass that has a field of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import Contradiction, fields, load, load_environment
from otel_reliability.quantities import Count, HexKey, Seconds


@dataclass(frozen=True)
class Door:
    """A part of a house, with two fields that must go together."""

    name: str = "front"
    width: float = 1.0
    locked_after: Seconds | None = None
    open: bool = False

    def contradiction(self) -> Contradiction | None:
        """An open door does not lock."""
        return (
            Contradiction("open", True, "true beside locked_after", "take one")
            if self.open and self.locked_after
            else None
        )


@dataclass(frozen=True)
class House:
    """A field of every kind."""

    front: Door = Door()
    doors: tuple[Door, ...] = ()
    colours: tuple[str, ...] = ("white",)
    rooms: Count = 3
    lights: Literal["on", "off"] = "off"
    heights: Mapping[str, Seconds] = field(default_factory=dict[str, float])
    key: HexKey | None = None


def message(*args: Any, **options: Any) -> str:
    """What loading a house says is wrong."""
    with pytest.raises(ConfigurationError) as error:
        load(House, *args, **options)
    return str(error.value)


def test_what_is_not_given_is_the_default() -> None:
    """An empty mapping, and an empty section of a file, change nothing."""
    assert load(House, {}) == House()
    assert load(House, {"front": None}) == House()


def test_what_is_not_given_is_taken_from_the_base() -> None:
    """Parts are merged field by field, lists and mappings are replaced."""
    base = House(front=Door("back", 2.0), colours=("red", "blue"), rooms=5)

    found = load(House, {"front": {"width": "2.5"}, "colours": ["green"]}, base=base)

    assert found == House(front=Door("back", 2.5), colours=("green",), rooms=5)


def test_the_same_value_is_read_from_every_form() -> None:
    """Values, mappings, lists, JSON text and plain text mean the same."""
    expected = House(doors=(Door("a", open=True),), colours=("red", "[ab]*"), heights={"x=y": 60.0})

    assert (
        load(House, {"doors": [{"name": "a", "open": True}], "colours": ["red", "[ab]*"], "heights": {"x=y": 60}})
        == expected
    )
    assert (
        load(House, {"doors": '[{"name": "a", "open": "true"}]', "colours": "red, [ab]*", "heights": "x=y=1m"})
        == expected
    )
    assert (
        load(House, {"colours": '["red", "[ab]*"]', "heights": '{"x=y": "1m"}', "doors": [Door("a", open=True)]})
        == expected
    )
    assert load(House, expected) == expected


def test_the_environment_sets_every_leaf() -> None:
    """A variable is the path in upper case; an empty one counts as absent; others' variables are left alone."""
    env = {
        "HOUSE_FRONT_NAME": "side",
        "HOUSE_FRONT_LOCKED_AFTER": "5m",
        "HOUSE_COLOURS": "red,blue",
        "HOUSE_ROOMS": "",
        "HOUSE_LIGHTS": "on",
        "HOUSE_STATE": "ours, but no setting",
        "PATH": "/bin",
    }

    found = load_environment(House, env, "HOUSE_", base=House(rooms=4), others={"HOUSE_STATE"})

    assert found == House(front=Door("side", locked_after=300.0), colours=("red", "blue"), rooms=4, lights="on")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"room": 1}, "room: 'room' is not a setting; the nearest is rooms."),
        ({"front": {"widht": 1}}, "front.widht: 'widht' is not a setting; the nearest is width."),
        ({"front": 3}, "front: 3 is not a mapping of settings; write it like {name: value}."),
        ({"front": "open"}, "front: 'open' is not a mapping of settings; write it like {name: value}."),
        ({"rooms": 0}, "rooms: 0 is not a whole number of at least 1; write it like 1."),
        ({"rooms": None}, "rooms: None is not a whole number of at least 1; write it like 1."),
        ({"lights": "of"}, "lights: 'of' is not one of on, off; the nearest is off."),
        ({"colours": 3}, "colours: 3 is not a list; write one, with brackets or dashes."),
        (
            {"colours": ["red", 3]},
            "colours[1]: 3 is not a text; write some text, in quotation marks if it looks like a number.",
        ),
        ({"heights": ["a"]}, "heights: ['a'] is not a mapping; write it like {name: value}."),
        ({"heights": "a"}, "heights: 'a' is not a mapping; write it like name=value, name=value."),
        (
            {"heights": {"a": "tall"}},
            "heights[a]: 'tall' is not a duration; write it like 10m, 1h30m or 250ms, or as a number of seconds, from 0.",
        ),
        (
            {"doors": [{}, {"width": "1 m"}]},
            "doors[1].width: '1 m' is not a number; write it like 1.",
        ),
        (
            {"doors": [{"open": True, "locked_after": 1}]},
            "doors[0].open: True is not true beside locked_after; take one.",
        ),
        ({"front": {"open": True, "locked_after": 1}}, "front.open: True is not true beside locked_after; take one."),
    ],
)
def test_what_is_wrong_is_told_in_four_parts(given: Mapping[str, object], expected: str) -> None:
    """The path of the field, the value, what is allowed and what to do."""
    assert message(given) == expected


def test_a_secret_stays_one() -> None:
    """Neither the message nor its chain holds a secret that is not allowed."""
    with pytest.raises(ConfigurationError) as error:
        load(House, {"key": "hunter2hunter2"})

    assert "hunter2" not in str(error.value)
    assert (error.value.__cause__, error.value.__suppress_context__) == (None, True)


def test_an_error_names_the_variable_it_came_from() -> None:
    """From the environment, the field is the variable."""
    with pytest.raises(ConfigurationError, match=r"^HOUSE_FRONT_WIDTH: 'wide' is not a number; write it like 1\.$"):
        load_environment(House, {"HOUSE_FRONT_WIDTH": "wide"}, "HOUSE_")


def test_a_misspelt_variable_is_told() -> None:
    """A variable with the prefix that names nothing would do nothing, silently."""
    with pytest.raises(ConfigurationError, match=r"^HOUSE_ROOM: .* is not a setting; the nearest (is|are) HOUSE_ROOMS"):
        load_environment(House, {"HOUSE_ROOM": "1"}, "HOUSE_")


def test_what_does_not_go_together_is_found_across_sources() -> None:
    """Each source may be right and their sum wrong."""
    base = House(front=Door(open=True))

    with pytest.raises(ConfigurationError, match=r"^front\.open: True is not true beside locked_after"):
        load_environment(House, {"HOUSE_FRONT_LOCKED_AFTER": "1m"}, "HOUSE_", base=base)


def test_all_settings_are_listed() -> None:
    """Leaves with their paths and defaults, in order; parts are walked, lists of parts are leaves."""
    assert [(one.path, one.default) for one in fields(House)][:6] == [
        ("front.name", "front"),
        ("front.width", 1.0),
        ("front.locked_after", None),
        ("front.open", False),
        ("doors", ()),
        ("colours", ("white",)),
    ]
