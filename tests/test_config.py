from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from otel_reliability.config import (
    NOT_SETTINGS,
    PREFIX,
    AssemblySettings,
    LimitSettings,
    MappingSettings,
    Settings,
    ToolSettings,
    WatchSettings,
    WindowSettings,
)
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import Field, fields, load, variable
from otel_reliability.service.settings import ServiceSettings

CANDIDATES: Final = (
    "off",
    '[{"last": 7}]',
    '[{"kind": "tool"}]',
    '[{"success": 0.9}]',
    "13m",
    "http://jaeger:16686/trace/{trace_id}",
    "7",
    "0.5",
    "3MiB",
    "false",
    "true",
    "as_started",
    "status",
    "none",
    "hal-harness",
    "as_zero",
    "outcome",
    "a=1",
    "ab" * 16,
    "/reliability",
)
"""Texts of which each setting accepts at least one."""


def test_the_defaults_are_allowed() -> None:
    settings = Settings()

    assert Settings.load() == load(Settings, settings) == settings == copy.deepcopy(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert [window.name for window in settings.windows] == ["recent"]


def test_code_overrides_environment_overrides_file() -> None:
    file = {
        "assembly": {"linger": "1s", "reopen": "2m", "idle_timeout": "5m"},
        "agent_key": ["service.version"],
    }
    env = {"OTEL_RELIABILITY_ASSEMBLY_REOPEN": "3m", "OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT": "6m"}

    found = Settings.load(file, env, assembly={"idle_timeout": 7})

    assert (found.assembly.linger, found.assembly.reopen, found.assembly.idle_timeout) == (
        1.0,
        180.0,
        7.0,
    )
    assert found.agent_key == ("service.version",)


@pytest.mark.parametrize("setting", list(fields(Settings)), ids=lambda setting: setting.path)
def test_every_setting_can_be_set_from_everywhere(setting: Field) -> None:
    path = setting.path
    texts: list[str] = []
    for text in CANDIDATES:
        nested: Any = text
        for part in reversed(path.split(".")):
            nested = {part: nested}
        try:
            from_file = Settings.load(nested)
        except ConfigurationError:
            continue
        assert Settings.from_environment({variable(path, PREFIX): text}) == from_file
        texts += [text] if from_file != Settings() else []

    assert texts, f"add a text to CANDIDATES that {path} accepts"


def test_there_are_few_settings() -> None:
    """Every setting is a promise: 56 at most, where tools, mapping, watch, windows and kafka count
    as one each.
    """
    grouped = sum(
        len(list(fields(kind))) - 1 for kind in (ToolSettings, MappingSettings, WatchSettings)
    )

    assert (
        len(list(fields(Settings))) - grouped + len(list(fields(ServiceSettings))) + len(["kafka"])
        <= 56
    )


def test_limits_derive_from_memory() -> None:
    """Twice the memory, twice the limits that protect it; those that change
    numbers are constants.
    """
    one, two = (Settings.load({"limits": {"memory": size}}).limits for size in ("1GiB", "2GiB"))

    assert (two.open_bytes, two.agents // one.agents) == (2 * one.open_bytes, 2)
    assert (two.rows, two.paths, two.tasks) == (one.rows, one.paths, one.tasks)
    assert LimitSettings(agents=3).agents == 3
    with pytest.raises(ConfigurationError, match=r"^limits\.agents: 'agents' is not a setting"):
        Settings.load({"limits": {"agents": 3}})


def test_variables_are_distinct() -> None:
    names = [variable(setting.path, PREFIX) for setting in fields(Settings)]

    assert len(set(names)) == len(names)
    assert not NOT_SETTINGS & set(names)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"windows": []},
            "windows: [] is not a list of at least one window; leave it out for the last 100 runs.",
        ),
        (
            {"windows": [{"last": 5}, {"last": 9}]},
            (
                "windows: ['recent', 'recent'] is not a list of windows with different "
                "names; rename one 'recent'."
            ),
        ),
        (
            {"windows": [{"last": 5}, {"name": "day"}]},
            "windows[1].last: None is not a window, without a period; set last, period or both.",
        ),
        (
            {"hash_key": "abc"},
            "hash_key: '(3 characters, not shown)' is not an even number of hexadecimal digits",
        ),
        (
            {"tools": {"soft_errors": ["("]}},
            "tools.soft_errors[0]: '(' is not a regular expression; missing ), ",
        ),
        ({"metric": {}}, "metric: 'metric' is not a setting; the nearest is metrics."),
    ],
)
def test_errors_name_the_field_by_its_path(given: Mapping[str, object], expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Settings.load(given)

    assert str(error.value).startswith(expected)


def test_settings_made_in_code_are_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"^assembly\.linger: -1 is not a duration"):
        load(Settings, Settings(assembly=AssemblySettings(linger=-1)))
    with pytest.raises(
        ConfigurationError, match=r"^windows\[0\]\.last: 0 is not a whole number >= 1"
    ):
        load(Settings, Settings(windows=(WindowSettings(last=0),)))
    with pytest.raises(ConfigurationError, match=r"^metrics\.min_runs: 0 is not"):
        load(Settings, replace(Settings(), metrics=replace(Settings().metrics, min_runs=0)))


def test_the_hash_key_is_not_printed() -> None:
    """A key in a log would undo the hashing."""
    assert "ab" * 16 not in repr(Settings(hash_key="ab" * 16))


def test_variables_that_are_no_settings_are_left_alone() -> None:
    assert (
        Settings.from_environment({"OTEL_RELIABILITY_LOUD": "1", "OTEL_SERVICE_NAME": "shop"})
        == Settings()
    )
