"""Compiled modules that were built for another version are not used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from otel_reliability import native

NAME = "otel_reliability_native_of_a_test"


@pytest.mark.parametrize("fits", [native.FITS - 1, native.FITS + 1, None])
def test_a_module_of_another_version_is_told_and_left_alone(
    fits: int | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its objects would not be ours. One from before there were versions says nothing."""
    module = ModuleType(NAME)
    if fits is not None:
        module.__dict__["FITS"] = fits
    monkeypatch.setitem(sys.modules, NAME, module)

    assert native.load(NAME) is None
    assert "pip install ./native" in caplog.text


def test_a_module_that_fits_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is."""
    module = ModuleType(NAME)
    module.__dict__["FITS"] = native.FITS
    monkeypatch.setitem(sys.modules, NAME, module)

    assert native.load(NAME) is module
