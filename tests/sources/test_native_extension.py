from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from otel_reliability.sources.native_decoder import FITS, load

NAME = "otel_reliability_native_of_a_test"


@pytest.mark.parametrize("fits", [FITS - 1, FITS + 1, None])
def test_a_module_of_another_version_is_told_and_left_alone(
    fits: int | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its objects would not be ours. One from before there were versions says nothing."""
    module = ModuleType(NAME)
    if fits is not None:
        module.__dict__["FITS"] = fits
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
    module.__dict__["FITS"] = FITS
    monkeypatch.setitem(sys.modules, NAME, module)

    assert load(NAME) is module
