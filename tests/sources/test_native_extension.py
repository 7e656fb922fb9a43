from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from otel_reliability.service.native_decoder import FIELDS, load

NAME = "otel_reliability_native_of_a_test"


OTHERS = {
    "no layouts": None,
    "a field more": {**FIELDS, "Call": (*FIELDS["Call"], "more")},
    "another order": {**FIELDS, "Session": FIELDS["Session"][::-1]},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_module_of_another_version_is_told_and_left_alone(
    other: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its objects would not be ours. One from before there were versions says nothing."""
    module = ModuleType(NAME)
    if OTHERS[other] is not None:
        module.__dict__["FIELDS"] = OTHERS[other]
    monkeypatch.setitem(sys.modules, NAME, module)

    assert load(NAME) is None
    assert "pip install ./native" in caplog.text


@pytest.mark.parametrize(
    "fault", ["ImportError('other libc')", "ValueError('size changed')", "SystemError('no result')"]
)
def test_a_module_that_cannot_be_loaded_is_told_and_done_without(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Built for another interpreter or library: whoever imports us need not know."""
    (tmp_path / f"{NAME}.py").write_text(f"raise {fault}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert load(NAME) is None
    assert fault.partition("(")[0] in caplog.text


def test_a_module_that_fits_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(NAME)
    module.__dict__["FIELDS"] = dict(FIELDS)
    monkeypatch.setitem(sys.modules, NAME, module)

    assert load(NAME) is module
