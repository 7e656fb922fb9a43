from __future__ import annotations

import json
from xml.etree.ElementTree import fromstring

import pytest

from otel_reliability.report import badge

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("trust", "score", "text"),
    [
        (94, 87, "✅ SECURED 94/100 | 🟢 STABLE 87/100"),
        (88, 71, "✅ SECURED 88/100 | 🟡 VARIABLE 71/100"),
        (62, 55, "⚠️ MODERATE 62/100 | 🟠 UNSTABLE 55/100"),
        (31, 22, "❌ CRITICAL 31/100 | 🔴 CRITICAL 22/100"),
        (None, 87, "🟢 STABLE 87/100"),
    ],
)
def test_the_text_is_that_of_the_source(trust: float | None, score: float, text: str) -> None:
    assert badge.text(score, trust) == text
    assert json.loads(badge.endpoint(score, trust))["message"] == text


def test_the_picture_shows_and_says_the_text() -> None:
    picture = fromstring(badge.svg(55, 62, 'my <"agent">'))
    fields = [
        (float(rect.get("x", 0)), float(rect.get("width", 0)))
        for rect in picture.iter(f"{SVG}rect")
    ][1:]

    assert picture.get("aria-label") == 'my <"agent">: ⚠️ MODERATE 62/100 | 🟠 UNSTABLE 55/100'
    assert [text.text for text in picture.iter(f"{SVG}text")] == [
        'my <"agent">',
        "⚠️ MODERATE 62/100",
        "🟠 UNSTABLE 55/100",
    ]
    assert [x for x, _ in fields] == [
        sum(width for _, width in fields[:at]) for at in range(len(fields))
    ]
    assert float(picture.get("width", 0)) == sum(width for _, width in fields)


def test_the_picture_fetches_nothing() -> None:
    picture = badge.svg(90, 90)

    assert "http" not in picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "<script" not in picture
