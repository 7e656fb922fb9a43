from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from inspect import getdoc

import pytest

import otel_reliability


def test_the_public_names_are_these_and_sorted() -> None:
    """Every name here is a promise for years; one more is a decision."""
    assert otel_reliability.__all__ == [
        "ConfigurationError",
        "ReliabilityError",
        "ReliabilitySpanExporter",
        "ReliabilitySpanProcessor",
        "Settings",
        "annotate",
        "record",
    ]
    assert sorted(otel_reliability.__all__) == otel_reliability.__all__ == dir(otel_reliability)


@pytest.mark.parametrize("name", otel_reliability.__all__)
def test_a_public_name_is_there_and_explained(name: str) -> None:
    """Each has a home, and a docstring."""
    assert getdoc(getattr(otel_reliability, name))


def test_a_name_that_is_none_is_said_to_be_none() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'annotat'"):
        _ = otel_reliability.annotat


@pytest.mark.parametrize("name", otel_reliability.__all__)
def test_no_module_has_the_name_of_something_public(name: str) -> None:
    """Importing that module would put it in the place of what people mean by the name."""
    assert find_spec(f"otel_reliability.{name}") is None


@pytest.mark.parametrize(
    ("code", "heavy"),
    [("import otel_reliability", "opentelemetry"), ("from otel_reliability import annotate", "opentelemetry.sdk")],
)
def test_what_is_not_asked_for_is_not_loaded(code: str, heavy: str) -> None:
    """Importing the package costs nothing; saying something about a run needs the API only."""
    loaded = f"{code}; import sys; print([name for name in sys.modules if name.startswith({heavy!r})])"
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
