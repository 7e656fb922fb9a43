"""Settings: from file, environment and code, each over the one before, and checked as a whole."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from otel_reliability.config import NOT_SETTINGS, PREFIX, AssemblySettings, Settings, WindowSettings
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import Field, fields, read, variable

CANDIDATES = (
    '[{"last": 7}]',
    "13m",
    "7",
    "0.5",
    "false",
    "true",
    "as_started",
    "status",
    "none",
    "hal-harness",
    "outcome",
    "a=1",
    "ab" * 16,
)
"""Texts of which each setting can be at least one."""


def test_the_defaults_are_allowed() -> None:
    """The defaults pass the checks that any value has to pass, and a copy is equal."""
    settings = Settings()

    assert Settings.load() == settings == copy.deepcopy(settings) == pickle.loads(pickle.dumps(settings))
    assert [window.name for window in settings.windows] == ["recent"]


def test_code_is_over_environment_is_over_file() -> None:
    """Each source replaces only what it names."""
    file = {"assembly": {"linger": "1s", "reopen": "2m", "idle_timeout": "5m"}, "agent_key": ["service.version"]}
    env = {"OTEL_RELIABILITY_ASSEMBLY_REOPEN": "3m", "OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT": "6m"}

    found = Settings.load(file, env, assembly={"idle_timeout": 7})

    assert (found.assembly.linger, found.assembly.reopen, found.assembly.idle_timeout) == (1.0, 180.0, 7.0)
    assert found.agent_key == ("service.version",)


@pytest.mark.parametrize("setting", list(fields(Settings)), ids=lambda setting: setting.path)
def test_every_setting_is_reached_from_everywhere(setting: Field) -> None:
    """What a file can say by path, a variable can say as text, with the same effect."""
    *parts, name = setting.path.split(".")
    nested: Mapping[str, object] = {name: setting.default}
    for part in reversed(parts):
        nested = {part: nested}

    assert Settings.from_mapping(nested) == Settings()
    text = another(setting)
    found = Settings.from_environment({variable(setting.path, PREFIX): text})
    assert value_at(found, setting.path) == read(setting.hint, text, "") != setting.default


def another(setting: Field) -> str:
    """A text that stands for another value than the default."""
    for text in CANDIDATES:
        try:
            if read(setting.hint, text, setting.path) != setting.default:
                return text
        except ConfigurationError:
            continue
    pytest.fail(f"add a text to CANDIDATES that {setting.path} can be")


def value_at(settings: Settings, path: str) -> object:
    """The value of a setting by its path."""
    found: object = settings
    for name in path.split("."):
        found = getattr(found, name)
    return found


def test_variables_are_told_apart() -> None:
    """No two settings share a variable, and none takes a name that is kept for something else."""
    names = [variable(setting.path, PREFIX) for setting in fields(Settings)]

    assert len(set(names)) == len(names)
    assert not NOT_SETTINGS & set(names)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"windows": []}, "windows: () is not a list of at least one window; leave it out for the last 100 runs."),
        (
            {"windows": [{"last": 5}, {"last": 9}]},
            "windows: 'recent' is not the name of one window only; give each its own.",
        ),
        (
            {"windows": [{"last": 5}, {"name": "day"}]},
            "windows[1].last: None is not a window, without a period; give last, period or both.",
        ),
        ({"assembly": {"reopen": "1h"}}, "assembly.remember: 900.0 is not at least `reopen` (3600 s); raise it."),
        ({"change": {"signals": ["paths"]}}, "change.signals[0]: 'paths' is not one of "),
        ({"hash_key": "abc"}, "hash_key: '(3 characters, not shown)' is not an even number of hexadecimal digits"),
        ({"tools": {"soft_errors": ["("]}}, "tools.soft_errors[0]: '(' is not a regular expression; missing ), "),
        ({"metric": {}}, "metric: 'metric' is not a setting; the nearest is metrics."),
    ],
)
def test_what_cannot_be_is_told(given: Mapping[str, object], expected: str) -> None:
    """The messages name the field by its whole path."""
    with pytest.raises(ConfigurationError) as error:
        Settings.from_mapping(given)

    assert str(error.value).startswith(expected)


def test_code_is_checked_too() -> None:
    """Settings made in code obey the same limits, and name the same paths."""
    with pytest.raises(ConfigurationError, match=r"^assembly\.linger: -1 is not a duration"):
        Settings(assembly=AssemblySettings(linger=-1))
    with pytest.raises(ConfigurationError, match=r"^windows\[0\]\.last: 0 is not a whole number of at least 1"):
        Settings(windows=(WindowSettings(last=0),))
    with pytest.raises(ConfigurationError, match=r"^metrics\.min_runs: 0 is not"):
        dataclasses.replace(Settings(), metrics=dataclasses.replace(Settings().metrics, min_runs=0))


def test_settings_are_frozen() -> None:
    """What an engine was made with stays as it is."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().agent_key = ()  # type: ignore[misc]


def test_the_hash_key_is_not_printed() -> None:
    """A key in a log would undo the hashing."""
    assert "ab" * 16 not in repr(Settings(hash_key="ab" * 16))


def test_variables_that_are_no_settings_are_left_alone() -> None:
    """The switch of the guard, and everything of others."""
    assert Settings.from_environment({"OTEL_RELIABILITY_LOUD": "1", "OTEL_SERVICE_NAME": "shop"}) == Settings()
