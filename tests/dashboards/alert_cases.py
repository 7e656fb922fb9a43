"""What Prometheus saw, and which alert fires then: the table that `test_rules.py` lets promtool
try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

AGENT: Final = 'service_name="shop",gen_ai_agent_name="support"'
AT: Final = f'{AGENT},instance="a:9464",job="reliability"'
OURS: Final = 'instance="a:9464",job="reliability"'
DAY: Final = 24 * 60
"""Minutes, as everything here: one sample a minute."""

Series = Mapping[str, str]


class Case(NamedTuple):
    """What Prometheus saw, when it is asked, and whether the alert fires then."""

    why: str
    fires: bool
    series: Series
    minute: int
    labels: Mapping[str, str] = {}
    every: int = 1
    """Minutes between two samples."""


def gauge(name: str, labels: str, *values: str) -> Series:
    """A series in promtool's own writing: `0x9` is ten zeros."""
    return {f"agent_reliability_{name}{{{labels}}}": " ".join(values)}


def runs(much: str, labels: str = AT, window: str = "40x3000") -> Series:
    return {
        **gauge("runs_total", f'{labels},outcome="success"', much),
        **gauge("window_runs", labels, window),
    }


def tiers(**changes: str) -> Series:
    all_of_them = dict.fromkeys(("STABLE", "VARIABLE", "UNSTABLE", "CRITICAL"), "0x300") | changes
    return {
        name: text
        for tier, values in all_of_them.items()
        for name, text in gauge("tier", f'{AT},tier="{tier}"', values).items()
    }


def ours(name: str, labels: str, values: str) -> Series:
    return {f"otel_reliability_{name}{{{OURS}{',' if labels else ''}{labels}}}": values}


def sessions(at_risk: int, of: int) -> Series:
    low = gauge("session_reliability_bucket", f'{AT},le="0.5"', f"0x9 {at_risk}x600")
    return {**low, **gauge("session_reliability_count", AT, f"0x9 {of}x600")}


def changes(values: str, instance: str = "a") -> Series:
    return gauge(
        "changes_total",
        f'{AGENT},instance="{instance}:9464",job="reliability",signal="calls"',
        values,
    )


def by(name: str, label: str, labels: str = "", **values: str) -> Series:
    """Series of ourselves that differ in one label, by its value."""
    return {
        key: text
        for value, text in values.items()
        for key in ours(name, f'{labels}{label}="{value}"', text)
    }


def spans(**dispositions: str) -> Series:
    return by("spans_total", "disposition", **dispositions)


def requests(**outcomes: str) -> Series:
    return by("requests_total", "outcome", **outcomes)


def pushes(**outcomes: str) -> Series:
    return by("exports_total", "outcome", 'sink="metrics",', **outcomes)


def limit_hits(values: str) -> Series:
    return ours("limit_hits_total", 'limit="agents"', values)


def usage(values: str) -> Series:
    return gauge("open_run_usage", f'{AT},kind="calls"', values)


def lag(values: str) -> Series:
    return ours("kafka_lag", 'topic="spans",partition="0"', values)


def dead_letters(values: str) -> Series:
    return ours("kafka_dead_letters_total", 'reason="undecodable"', values)


BUSY: Final = runs("0+2x3000")
IDLE: Final = runs("100x3000")
FEW: Final = runs("0+2x3000", window="19x3000")
FELL: Final = tiers(STABLE="1x119 0x180", VARIABLE="0x119 1x180")
EXPLODES: Final = gauge("retry_explosion_share", AT, "0.1x300")
SELDOM: Final = gauge("retry_explosion_share", AT, "0.04x300")
EXPLODED: Final = gauge("retry_explosions_total", AT, "0+1x300")
FULL: Final = gauge("token_budget_pressure", AT, "0.9x300")


SILENT: Final = {
    **runs(f"0+1x{DAY}"),
    **gauge("last_run_timestamp_seconds", AT, f"0+60x{DAY} {DAY * 60}x200"),
}
"""A run each minute of a day, then none."""

OUTCOMES: Final = {
    **runs("0+6x600"),
    **gauge("runs_total", f'{AT},outcome="failure"', "0+4x600"),
}
REPLICA: Final = f'{AGENT},instance="b:9464",job="reliability"'


def objective(least: float, signal: str = "success", days: int = 30) -> Series:
    of_signal = f'{AT},signal="{signal}"'
    return {
        **gauge("objective", of_signal, f"{least}x6000"),
        **gauge("objective_period_seconds", of_signal, f"{days * 86_400}x6000"),
    }


def outcomes(success: str, failure: str) -> Series:
    return {
        **gauge("runs_total", f'{AT},outcome="success"', success),
        **gauge("runs_total", f'{AT},outcome="failure"', failure),
    }


OUTAGE: Final = outcomes("0+2x60 120x300", "0x60 0+2x300")
"""An hour of runs that succeed, then nothing but failures."""
TENTH: Final = outcomes("0+9x200", "0+1x200")

CASES: Final[Mapping[str, Sequence[Case]]] = {
    "AgentSuccessLow": [
        Case(
            "four of ten runs fail, in a stable way",
            True,
            {**gauge("success_rate", AT, "0.6x600"), **OUTCOMES},
            120,
        ),
        Case(
            "a fifth of the runs fail",
            False,
            {**gauge("success_rate", AT, "0.8x600"), **OUTCOMES},
            120,
        ),
        Case(
            "the three outcomes that are known of a hundred runs are failures",
            False,
            {
                **gauge("success_rate", AT, "0x600"),
                **gauge("window_runs", AT, "100x600"),
                **gauge("runs_total", f'{AT},outcome="completed"', "0+1x600"),
                **gauge("runs_total", f'{AT},outcome="failure"', "0x50 3x550"),
            },
            120,
        ),
        Case(
            "a replica that saw few runs of the agent saw them fail",
            False,
            {
                **gauge("success_rate", AT, "1x600"),
                **gauge("success_rate", REPLICA, "0x600"),
                **gauge("window_runs", REPLICA, "3x600"),
                **OUTCOMES,
            },
            120,
        ),
        Case(
            "a gap between scrapes resets nothing",
            True,
            {
                **gauge("success_rate", AT, "0.6x100 _x12 0.6x500"),
                **gauge("window_runs", AT, "40x100 _x12 40x500"),
                **gauge("runs_total", f'{AT},outcome="success"', "0+6x100 _x12 600+6x500"),
                **gauge("runs_total", f'{AT},outcome="failure"', "0+4x100 _x12 400+4x500"),
            },
            115,
        ),
    ],
    "ReliabilityInstanceDown": [
        Case(
            "one of two instances has been gone for an hour",
            True,
            {
                'otel_reliability_ready{instance="a:9464",job="reliability"}': "1x600",
                'otel_reliability_ready{instance="b:9464",job="reliability"}': "1x400 stale",
            },
            460,
        ),
        Case(
            "a third instance was there for some minutes of a deploy",
            False,
            {
                'otel_reliability_ready{instance="a:9464",job="reliability"}': "1x600",
                'otel_reliability_ready{instance="b:9464",job="reliability"}': "1x600",
                'otel_reliability_ready{instance="c:9464",job="reliability"}': ("_x380 1x10 stale"),
            },
            420,
        ),
    ],
    "AgentFailing": [
        Case(
            "an agent of which every run fails",
            True,
            {**gauge("verdict", AT, "0x600"), **runs("0+1x600")},
            120,
        ),
        Case(
            "an agent whose paths vary, and that succeeds",
            False,
            {**gauge("verdict", AT, "3x600"), **runs("0+1x600")},
            120,
        ),
        Case(
            "four failures of four are too few",
            False,
            {**gauge("verdict", AT, "0x600"), **runs("0+1x600", window="4x600")},
            120,
        ),
        Case(
            "it failed long ago, and no longer runs",
            False,
            {**gauge("verdict", AT, "0x600"), **runs("40x600")},
            120,
        ),
    ],
    "AgentErrorBudgetBurnsFast": [
        Case("every run of an hour fails", True, {**objective(0.95), **OUTAGE}, 125),
        Case("so it does where an objective allows much", True, {**objective(0.8), **OUTAGE}, 125),
        Case(
            "four of ten end in an error, and the objective is about errors",
            True,
            {
                **objective(0.95, "errors"),
                **gauge("runs_total", f'{AT},outcome="completed"', "0+10x200"),
                **gauge("run_errors_total", AT, "0+4x200"),
            },
            100,
        ),
        Case(
            "one in ten is much of a week's budget", True, {**objective(0.95, days=7), **TENTH}, 100
        ),
        Case("and little of a month's", False, {**objective(0.95), **TENTH}, 100),
        Case(
            "it is over",
            False,
            {**objective(0.95), **outcomes("0+2x60 120x20 120+2x150", "0x60 0+2x20 40x150")},
            200,
        ),
        Case(
            "three runs, which fail",
            False,
            {**objective(0.95), **outcomes("0x200", "0x20 1x20 2x20 3x100")},
            90,
        ),
        Case("it has no objective", False, OUTAGE, 125),
    ],
    "AgentErrorBudgetBurnsSlowly": [
        Case(
            "a fifth of the runs of a day fail",
            True,
            {**objective(0.95), **outcomes("0+4x200", "0+1x200")},
            1_000,
            every=10,
        ),
        Case(
            "one run in sixteen fails for two days",
            True,
            {**objective(0.95), **outcomes("0+15x500", "0+1x500")},
            2_880,
            every=10,
        ),
        Case(
            "one run in fifty does",
            False,
            {**objective(0.95), **outcomes("0+49x500", "0+1x500")},
            2_880,
            every=10,
        ),
        Case(
            "a fifth of the runs failed, and none do now",
            False,
            {**objective(0.95), **outcomes("0+4x100 400+5x100", "0+1x100 100x100")},
            1_500,
            every=10,
        ),
        Case("it has no objective", False, outcomes("0+4x200", "0+1x200"), 1_000, every=10),
    ],
    "AgentErrors": [
        Case(
            "one run in five ends in an error",
            True,
            {**gauge("error_rate", AT, "0.2x600"), **runs("0+1x600")},
            120,
        ),
        Case(
            "one in fifty does",
            False,
            {**gauge("error_rate", AT, "0.02x600"), **runs("0+1x600")},
            120,
        ),
    ],
    "AgentTierFell": [
        Case(
            "a tier lower than an hour ago, for ten minutes",
            True,
            {**BUSY, **FELL},
            140,
            {"severity": "warning"},
        ),
        Case("for less than ten minutes", False, {**BUSY, **FELL}, 125),
        Case("the fall is more than an hour ago", False, {**BUSY, **FELL}, 200),
        Case(
            "it rose", False, {**BUSY, **tiers(VARIABLE="1x119 0x180", STABLE="0x119 1x180")}, 140
        ),
        Case("a handful of runs", False, {**FEW, **FELL}, 140),
        Case("no run came since", False, {**IDLE, **FELL}, 140),
    ],
    "AgentRetryExplosion": [
        Case(
            "one run in ten explodes, the latest just now",
            True,
            {**BUSY, **EXPLODES, **EXPLODED},
            120,
        ),
        Case("one in twenty-five does", False, {**BUSY, **SELDOM, **EXPLODED}, 120),
        Case(
            "none in the last hour",
            False,
            {**BUSY, **EXPLODES, **gauge("retry_explosions_total", AT, "5x300")},
            120,
        ),
        Case("a handful of runs", False, {**FEW, **EXPLODES, **EXPLODED}, 120),
    ],
    "AgentTokenPressure": [
        Case("above 0.8 for a quarter of an hour", True, {**BUSY, **FULL}, 120),
        Case("at 0.8", False, {**BUSY, **gauge("token_budget_pressure", AT, "0.8x300")}, 120),
        Case("no run for an hour", False, {**IDLE, **FULL}, 120),
        Case("a handful of runs", False, {**FEW, **FULL}, 120),
    ],
    "AgentRunExceedsBound": [
        Case("three times the bound", True, usage("0.5x20 3x40"), 60),
        Case("near the bound", False, usage("0.9x100"), 60),
    ],
    "AgentSessionsAtRisk": [
        Case("four of ten sessions", True, sessions(at_risk=4, of=10), 60),
        Case("one of ten", False, sessions(at_risk=1, of=10), 60),
        Case("one of the only two", False, sessions(at_risk=1, of=2), 60),
        Case("yesterday's", False, sessions(at_risk=4, of=10), 500),
    ],
    "AgentBehaviourChanged": [
        Case(
            "an alarm within the hour",
            True,
            changes("0x59 1x300"),
            70,
            {"signal": "calls", "severity": "info"},
        ),
        Case(
            "the first alarm ever, the first of its counter",
            True,
            {**BUSY, **changes("_x59 1x300")},
            70,
            {"signal": "calls"},
        ),
        Case("an old alarm, and Prometheus is new", False, {**BUSY, **changes("1x300")}, 70),
        Case(
            "an old alarm, told by another instance since",
            False,
            {**BUSY, **changes("1x60 stale"), **changes("_x60 1x300", instance="b")},
            70,
        ),
        Case("none, ever", False, changes("0x300"), 70),
        Case("one, long ago", False, changes("0x59 1x300"), 200),
    ],
    "AgentWithoutRuns": [
        Case("a busy agent is silent for two hours", True, SILENT, DAY + 120),
        Case("for half an hour", False, SILENT, DAY + 30),
        Case(
            "it never runs often",
            False,
            {**runs("0x700 50x2000"), **gauge("last_run_timestamp_seconds", AT, "0x2000")},
            DAY + 120,
        ),
    ],
    "ReliabilityTelemetryLost": [
        Case(
            "two spans in a hundred are refused",
            True,
            spans(received="0+1000x60", refused="0+20x60"),
            40,
        ),
        Case("one in a thousand is late", False, spans(received="0+1000x60", late="0+1x60"), 40),
        Case("many, of a handful", False, spans(received="0+10x60", late="0+5x60"), 40),
        Case(
            "non-agent spans are not lost", False, spans(received="0+1000x60", other="0+900x60"), 40
        ),
    ],
    "ReliabilityRequestsRefused": [
        Case("one request in five", True, requests(accepted="0+8x60", unavailable="0+2x60"), 40),
        Case("some are accepted in part", False, requests(accepted="0+8x60", partial="0+2x60"), 40),
        Case("one of three", False, requests(accepted="0x20 2x60", invalid="0x20 1x60"), 40),
    ],
    "ReliabilityExportFailing": [
        Case("no push arrives", True, pushes(unavailable="0+1x60"), 40, {"sink": "metrics"}),
        Case("one in ten does not", False, pushes(unavailable="0+1x60", accepted="0+9x60"), 40),
        Case("the first two", False, pushes(unavailable="0x38 1 2"), 40),
    ],
    "ReliabilityLimitReached": [
        Case("something finds no place", True, limit_hits("0x20 0+1x60"), 40, {"limit": "agents"}),
        Case("everything does", False, limit_hits("7x60"), 40),
    ],
    "ReliabilityServiceDown": [
        Case(
            "it was there an hour ago",
            True,
            ours("ready", "", "1x30 stale"),
            90,
            {"severity": "critical"},
        ),
        Case("it is there", False, ours("ready", "", "1x200"), 90),
        Case(
            "one of two went",
            False,
            {
                **ours("ready", "", "1x30 stale"),
                'otel_reliability_ready{instance="b:9464",job="reliability"}': "1x200",
            },
            90,
        ),
        Case(
            "nobody has a service: agents measure in their own process", False, {**BUSY, **FULL}, 90
        ),
    ],
    "ReliabilityServiceNotReady": [
        Case("for ten minutes", True, ours("ready", "", "1x30 0x60"), 42),
        Case("for two", False, ours("ready", "", "1x30 0x2 1x60"), 42),
    ],
    "ReliabilityKafkaLagging": [
        Case(
            "more and more is not read",
            True,
            lag("0+100x120"),
            60,
            {"topic": "spans", "severity": "warning"},
        ),
        Case("an outage is being worked off", False, lag("100000-500x120"), 60),
        Case("a handful", False, lag("0+5x120"), 60),
    ],
    "ReliabilityKafkaDeadLetters": [
        Case(
            "the first of its kind", True, dead_letters("_x30 1x60"), 40, {"reason": "undecodable"}
        ),
        Case("one more", True, dead_letters("3x50 4x60"), 60),
        Case("none since", False, dead_letters("3x200"), 60),
    ],
}
