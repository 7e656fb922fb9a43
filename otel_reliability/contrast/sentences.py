"""Findings in sentences, the same on every surface.

They name tools and give numbers; never arguments, tasks, or ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from otel_reliability.contrast.compare import OF_ORDER, Compared, Difference, Side
from otel_reliability.contrast.features import KINDS, NUMBERS, OUTCOMES, Feature
from otel_reliability.contrast.why import Finding, Why
from otel_reliability.model.run import short_value
from otel_reliability.statistics.contrast import PERMUTATIONS, Detectable
from otel_reliability.statistics.significance import SIGNIFICANCE_LEVEL

MAX_NAMED: Final = 3
"""Maximum features of one sort that the sentence of a comparison names."""
MAX_STEPS: Final = 6
"""Maximum steps of a path that a sentence spells out."""
_LEAST_P: Final = 1 / (1 + PERMUTATIONS)


def of_comparison(compared: Compared) -> str:
    """Return the sentence of a comparison: what differs, with the p-value of the weakest part of
    it; or how large a difference these runs could have shown.
    """
    if compared.why or compared.detectable is None:
        return f"no result: {compared.why}"
    sides = f"{compared.before:,} → {compared.after:,} runs"
    if not compared.differences:
        return (
            f"no difference that these runs could show ({sides}, {compared.features} features "
            f"compared): {could_show(compared.detectable)}"
        )
    named = headline(compared.differences)
    most = max(each.p for each in named)
    more = len(compared.differences) - len(named)
    text = "; ".join(map(of_difference, named)) + (f"; and {more} more" if more else "")
    if compared.shared_tasks is not None and compared.shared_tasks < 1:
        text += (
            f"; only {_percent(compared.shared_tasks)} of the runs are at tasks that both have, "
            "which may be why"
        )
    return f"differs: {text} ({sides}, {compared.features} features compared, {_p(most)})"


def headline(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences that a sentence names: success and errors first, then the tools, then
    the numbers; the order of steps where neither tools nor calls differ.
    """
    outcomes = [each for kind in OUTCOMES for each in differences if each.feature.kind == kind]
    numbers = [each for each in differences if each.feature.kind in NUMBERS]
    order = [each for each in differences if each.feature.kind in OF_ORDER]
    told = {id(each) for each in (*outcomes, *numbers, *order)}
    tools = [each for each in differences if id(each) not in told]
    calls = any(each.feature.kind == "calls" for each in numbers)
    return [
        *outcomes,
        *tools[:MAX_NAMED],
        *([] if tools or calls else order[:MAX_NAMED]),
        *numbers[: MAX_NAMED + 1],
    ]


def of_difference(difference: Difference) -> str:
    """Return a difference in words.

    >>> sides = Side(40, 0, 0.0), Side(40, 26, 0.65)
    >>> of_difference(Difference(Feature("uses", ("verify",)), 0.001, 6.2, *sides, ()))
    'verify is used in 0 % → 65 % of the runs'
    """
    feature = difference.feature
    before, after = (_amount(feature, side) for side in (difference.before, difference.after))
    if feature.kind in KINDS:
        return f"{KINDS[feature.kind].share.format(*names(feature))} {before} → {after} of the runs"
    return f"{NUMBERS[feature.kind].words} {before} → {after}"


def names(feature: Feature) -> tuple[str, ...]:
    """Return what a feature is about, as sentences show it."""
    if feature.kind == "path":
        shown = feature.names[:MAX_STEPS]
        rest = len(feature.names) - len(shown)
        return (" → ".join(shown) + (f" → {rest} more steps" if rest else ""),)
    return tuple(short_value(feature.kind, name) for name in feature.names)


def could_show(detectable: Detectable) -> str:
    """Return the size of difference that would have been shown in four of five cases."""
    if detectable.share >= 1:
        return "so few runs can show no difference"
    share = f"a share would have to differ by {round(100 * detectable.share)} points"
    return f"{share}, a mean by {detectable.deviations:.2g} standard deviations"


def _amount(feature: Feature, side: Side) -> str:
    if side.value is None:
        return "unknown"
    if feature.kind in KINDS or NUMBERS[feature.kind].unit == "{ratio}":
        return _percent(side.value)
    if NUMBERS[feature.kind].unit == "s":
        return f"{side.value:.3g} s"
    amount = f"{side.value:.3g}" if side.value < 1_000 else f"{side.value:,.0f}"
    return f"${amount}" if NUMBERS[feature.kind].unit == "USD" else amount


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _p(p: float) -> str:
    return f"p ≤ {max(p, _LEAST_P):.2g}"


def of_why(why: Why, *, more: bool = False) -> str:
    """Return what was contrasted, and, where nothing was found, how large a difference these runs
    could have shown. `more`: something was found in another way, and stands with it.
    """
    contrasted = f"{why.failing:,} of the latest {why.runs:,} runs {why.question.did}"
    if why.why or why.detectable is None:
        return f"{contrasted}: {why.why}"
    if not why.findings:
        nothing = "nothing else found" if more else "nothing found"
        return f"{contrasted}: {nothing} that they could show; {could_show(why.detectable)}"
    return (
        f"{contrasted}; what they have in common, of {why.features} features (an association is "
        "no cause)"
    )


def of_finding(finding: Finding, why: Why) -> str:
    """Return a finding in words.

    >>> from otel_reliability.contrast.why import FAILING
    >>> sides = Side(24, 23, 23 / 24), Side(176, 93, 93 / 176)
    >>> feature = Feature("uses", ("book_reservation",))
    >>> print(of_finding(Finding(feature, 4.0, 0.001, None, *sides, ()), Why(200, 116, FAILING)))
    runs that call book_reservation fail in 96 % (23 of 24 runs) against 53 % (93 of 176)
    """
    feature = finding.feature
    group = finding.group
    others = finding.others
    if feature.kind in KINDS:
        named = KINDS[feature.kind].runs.format(*names(feature))
        ours = f"{group.counted or 0:,} of {group.runs:,} runs"
        theirs = f"{others.counted or 0:,} of {others.runs:,}"
        text = (
            f"{named} {why.question.do} in {_amount(feature, group)} ({ours}) against "
            f"{_amount(feature, others)} ({theirs})"
        )
    else:
        text = (
            f"{NUMBERS[feature.kind].words}: {_amount(feature, group)} on average in "
            f"{why.question.runs}, {_amount(feature, others)} in the others"
        )
    if finding.within_p is None:
        return text
    holds = finding.within_p <= SIGNIFICANCE_LEVEL
    return f"{text}; {'also' if holds else 'not shown'} within {why.strata}"
