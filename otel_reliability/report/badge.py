"""The badge of an agent: text, SVG, and the JSON that shields.io draws one from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from rich.cells import cell_len

from otel_reliability.metrics.stability.tier import (
    CRITICAL_BELOW,
    SECURED_ABOVE,
    Tier,
    badge_text,
    tier_of,
    trust_text,
)
from otel_reliability.metrics.success.verdict import Rate, Verdict, assess, only_fails_now
from otel_reliability.report.text import allowed, percent

COLOURS: Final = {
    Tier.STABLE: "#2e7d32",
    Tier.VARIABLE: "#b58900",
    Tier.UNSTABLE: "#c75300",
    Tier.CRITICAL: "#c62828",
}
"""Dark enough for white text."""
LABEL: Final = "#555"
HEIGHT: Final = 20
PADDING: Final = 6


class Half(NamedTuple):
    """The half of a badge that is about success, and the tier of its colour."""

    text: str
    grade: Tier


def success_half(ask: Callable[[str], Rate]) -> Half | None:
    """Return the half of a badge that says how often an agent succeeds; None where that is no worse
    than the tier of its score says. `ask` returns the readings of a verdict (`NEEDED`).

    >>> from otel_reliability.model.reading import Reading
    >>> def half(**values: float) -> Half | None:
    ...     return success_half(lambda name: Reading(values.get(name), 20))
    >>> half(error_rate=1.0, failed_run_share=1.0, score=90)
    Half(text='❌ FAILING 100 % end in errors', grade=<Tier.CRITICAL: ...>)
    >>> half(success_rate=0.7, score=90, failed_in_a_row=12)
    Half(text='❌ FAILING 12 runs in a row', grade=<Tier.CRITICAL: ...>)
    >>> half(success_rate=0.55, score=90)
    Half(text='🟠 55 % succeed', grade=<Tier.UNSTABLE: ...>)
    >>> half(failed_run_share=0.25, score=90)
    Half(text='🟡 25 % failed', grade=<Tier.VARIABLE: ...>)
    >>> half(failed_call_share=0.9, score=90)
    Half(text='🔴 most tool calls fail', grade=<Tier.CRITICAL: ...>)
    """
    verdict, grade = assess(ask)
    score = ask("score").value
    is_said = score is None or tier_of(score) is grade
    if grade is None or (verdict is not Verdict.FAILING and is_said):
        return None
    sign = "❌ FAILING" if verdict is Verdict.FAILING else grade.sign
    return Half(f"{sign} {_success(ask)}", grade)


def _success(ask: Callable[[str], Rate]) -> str:
    """Return what speaks most against an agent, in few words."""
    success = ask("success_rate").value
    errors = ask("error_rate").value
    failed = ask("failed_run_share").value
    if only_fails_now(ask):
        return f"{ask('failed_in_a_row').value:.0f} runs in a row"
    if success is not None:
        return f"{percent(success)} succeed"
    if failed and failed > (errors or 0.0):
        return f"{percent(failed)} failed"
    return f"{percent(errors)} end in errors" if errors else "most tool calls fail"


def text(
    score: float | None,
    trust: float | None = None,
    coverage: str = "",
    success: Half | None = None,
) -> str:
    """Return the badge in one line, empty where there is nothing to show.

    `success` is what `success_half` returned: it comes first, as no score makes up for it.
    `coverage` is the sentence on the points assessed, where these are not all.

    >>> text(87, coverage="from 60 of 100 points assessed")
    '🟢 STABLE 87/100, from 60 of 100 points assessed'
    >>> text(100, trust=94, success=Half("❌ FAILING 0 % succeed", Tier.CRITICAL))
    '❌ FAILING 0 % succeed | ✅ SECURED 94/100 | 🟢 STABLE 100/100'
    """
    scored = "" if score is None else badge_text(score, trust)
    halves = " | ".join(filter(None, (success and success.text, scored)))
    return ", ".join(filter(None, (halves, coverage)))


def svg(
    score: float | None,
    trust: float | None = None,
    label: str = "reliability",
    coverage: str = "",
    success: Half | None = None,
) -> str:
    """Return the badge as a self-contained SVG: no font, script or image is fetched. `label` names
    the agent; the other arguments are those of `text`.

    >>> svg(87, trust=94).partition("><title>")[0]
    '<svg xmlns="http://www.w3.org/2000/svg" ... aria-label="reliability: ✅ SECURED ...'
    """
    parts = [(allowed(label), LABEL)]
    if success is not None:
        parts.append((success.text, COLOURS[success.grade]))
    if trust is not None:
        grade = (
            Tier.STABLE
            if trust > SECURED_ABOVE
            else Tier.VARIABLE
            if trust >= CRITICAL_BELOW
            else Tier.CRITICAL
        )
        parts.append((trust_text(trust), COLOURS[grade]))
    if score is not None:
        parts.append((badge_text(score), COLOURS[tier_of(score)]))
    if coverage:
        parts.append((coverage, LABEL))
    return _drawn(parts, f"{allowed(label)}: {text(score, trust, coverage, success)}")


def endpoint(
    score: float | None,
    trust: float | None = None,
    label: str = "reliability",
    coverage: str = "",
    success: Half | None = None,
) -> str:
    """Return the JSON of a shields.io endpoint badge, with the arguments of `svg`.

    >>> print(endpoint(71))
    {"schemaVersion": 1, "label": "reliability", "message": "🟡 VARIABLE 71/100", ...}
    """
    grade = success.grade if success is not None else None if score is None else tier_of(score)
    answer = {
        "schemaVersion": 1,
        "label": label,
        "message": text(score, trust, coverage, success),
        "color": COLOURS[grade or Tier.CRITICAL],
    }
    return json.dumps(answer, ensure_ascii=False)


def _drawn(parts: Sequence[tuple[str, str]], title: str) -> str:
    """Return the picture of these texts, each on its colour. Widths are those of Verdana;
    `textLength` makes them exact.
    """
    widths = [7 * cell_len(words) + 2 * PADDING for words, _ in parts]
    starts = [sum(widths[:at]) for at in range(len(parts))]
    total = sum(widths)
    fields = texts = ""
    for (words, colour), x, width in zip(parts, starts, widths, strict=True):
        fields += f'<rect x="{x}" width="{width}" height="{HEIGHT}" fill="{colour}"/>'
        middle = f"{x + width / 2:g}"
        length = width - 2 * PADDING
        texts += f'<text x="{middle}" y="14" textLength="{length}">{escape(words)}</text>'
    name = escape(title, {'"': "&quot;"})
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT}" '
        f'role="img" aria-label="{name}">'
        f'<title>{name}</title><clipPath id="r"><rect width="{total}" height="{HEIGHT}" '
        'rx="3"/></clipPath>'
        f'<g clip-path="url(#r)">{fields}</g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu '
        f'Sans,sans-serif" font-size="11">{texts}</g>'
        "</svg>\n"
    )
