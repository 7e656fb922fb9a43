"""What Prometheus saw, and which alert fires then: the table that `test_rules.py` lets promtool try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

AGENT: Final = 'service_name="shop",gen_ai_agent_name="support"'
AT: Final = f'{AGENT},instance="a:9464",job="reliability"'
OURS: Final = 'instance="a:9464",job="reliability"'
DAY: Final = 24 * 60
"""Minutes, as everything here: one sample a minute."""

Series = Mapping[str, str]


class Case(NamedTuple):
    """What Prometheus saw, when it is asked, and whether the alert fires then."""

    alert: str
    why: str
    fires: bool
    series: Series
    minute: int
    labels: Mapping[str, str] = {}


def gauge(name: str, labels: str, *values: str) -> Series:
    """A series in promtool's own writing: `0x9` is ten zeros."""
    return {f"agent_reliability_{name}{{{labels}}}": " ".join(values)}


def runs(much: str, labels: str = AT, window: str = "40x3000") -> Series:
    """An agent's counter of runs, and the runs in its window."""
    return {**gauge("runs_total", f'{labels},outcome="success"', much), **gauge("window_runs", labels, window)}


def tiers(**changes: str) -> Series:
    """Which tier an agent stands in, by tier."""
    all_of_them = dict.fromkeys(("STABLE", "VARIABLE", "UNSTABLE", "CRITICAL"), "0x300") | changes
    return {
        name: text
        for tier, values in all_of_them.items()
        for name, text in gauge("tier", f'{AT},tier="{tier}"', values).items()
    }


def ours(name: str, labels: str, values: str) -> Series:
    """A series of ourselves."""
    return {f"otel_reliability_{name}{{{OURS}{',' if labels else ''}{labels}}}": values}


BUSY: Final = runs("0+2x3000")
IDLE: Final = runs("100x3000")
FEW: Final = runs("0+2x3000", window="19x3000")
FELL: Final = tiers(STABLE="1x119 0x180", VARIABLE="0x119 1x180")
EXPLODES: Final = gauge("retry_explosion_share", AT, "0.1x300")
EXPLODED: Final = gauge("retry_explosions_total", AT, "0+1x300")
FULL: Final = gauge("token_budget_pressure", AT, "0.9x300")


RISKY: Final = {
    **gauge("session_reliability_bucket", f'{AT},le="0.5"', "0x9 4x600"),
    **gauge("session_reliability_count", AT, "0x9 10x600"),
}

CASES: Final = (
    Case(
        "AgentTierFell",
        "a tier lower than an hour ago, for ten minutes",
        True,
        {**BUSY, **FELL},
        140,
        {"severity": "warning"},
    ),
    Case("AgentTierFell", "for less than ten minutes", False, {**BUSY, **FELL}, 125),
    Case("AgentTierFell", "the fall is more than an hour ago", False, {**BUSY, **FELL}, 200),
    Case("AgentTierFell", "it rose", False, {**BUSY, **tiers(VARIABLE="1x119 0x180", STABLE="0x119 1x180")}, 140),
    Case("AgentTierFell", "a handful of runs", False, {**FEW, **FELL}, 140),
    Case("AgentTierFell", "no run came since", False, {**IDLE, **FELL}, 140),
    Case(
        "AgentRetryExplosion",
        "one run in ten explodes, the latest just now",
        True,
        {**BUSY, **EXPLODES, **EXPLODED},
        120,
    ),
    Case(
        "AgentRetryExplosion",
        "one in twenty-five does",
        False,
        {**BUSY, **gauge("retry_explosion_share", AT, "0.04x300"), **EXPLODED},
        120,
    ),
    Case(
        "AgentRetryExplosion",
        "none in the last hour",
        False,
        {**BUSY, **EXPLODES, **gauge("retry_explosions_total", AT, "5x300")},
        120,
    ),
    Case("AgentRetryExplosion", "a handful of runs", False, {**FEW, **EXPLODES, **EXPLODED}, 120),
    Case("AgentTokenPressure", "above 0.8 for a quarter of an hour", True, {**BUSY, **FULL}, 120),
    Case("AgentTokenPressure", "at 0.8", False, {**BUSY, **gauge("token_budget_pressure", AT, "0.8x300")}, 120),
    Case("AgentTokenPressure", "no run for an hour", False, {**IDLE, **FULL}, 120),
    Case("AgentTokenPressure", "a handful of runs", False, {**FEW, **FULL}, 120),
    Case(
        "AgentRunExceedsBound",
        "three times the bound",
        True,
        gauge("open_run_usage", f'{AT},kind="calls"', "0.5x20 3x40"),
        60,
    ),
    Case("AgentRunExceedsBound", "near the bound", False, gauge("open_run_usage", f'{AT},kind="calls"', "0.9x100"), 60),
    Case("AgentSessionsAtRisk", "four of ten sessions", True, RISKY, 60),
    Case(
        "AgentSessionsAtRisk",
        "one of ten",
        False,
        {**RISKY, **gauge("session_reliability_bucket", f'{AT},le="0.5"', "0x9 1x600")},
        60,
    ),
    Case(
        "AgentSessionsAtRisk",
        "one of the only two",
        False,
        {
            **gauge("session_reliability_bucket", f'{AT},le="0.5"', "0x9 1x600"),
            **gauge("session_reliability_count", AT, "0x9 2x600"),
        },
        60,
    ),
    Case("AgentSessionsAtRisk", "yesterday's", False, RISKY, 500),
    Case(
        "AgentBehaviourChanged",
        "an alarm within the hour",
        True,
        gauge("changes_total", f'{AT},signal="calls"', "0x59 1x300"),
        70,
        {"signal": "calls", "severity": "info"},
    ),
    Case(
        "AgentBehaviourChanged",
        "the first alarm ever: its counter begins with it",
        True,
        {**BUSY, **gauge("changes_total", f'{AT},signal="calls"', "_x59 1x300")},
        70,
        {"signal": "calls"},
    ),
    Case(
        "AgentBehaviourChanged",
        "an old alarm, and Prometheus is new",
        False,
        {**BUSY, **gauge("changes_total", f'{AT},signal="calls"', "1x300")},
        70,
    ),
    Case(
        "AgentBehaviourChanged",
        "an old alarm, told by another instance since",
        False,
        {
            **BUSY,
            **gauge("changes_total", f'{AT},signal="calls"', "1x60 stale"),
            **gauge("changes_total", f'{AGENT},instance="b:9464",job="reliability",signal="calls"', "_x60 1x300"),
        },
        70,
    ),
    Case("AgentBehaviourChanged", "none, ever", False, gauge("changes_total", f'{AT},signal="calls"', "0x300"), 70),
    Case(
        "AgentBehaviourChanged",
        "one, long ago",
        False,
        gauge("changes_total", f'{AT},signal="calls"', "0x59 1x300"),
        200,
    ),
    Case(
        "AgentWithoutRuns",
        "a busy agent is silent for two hours",
        True,
        {
            **runs(f"0+1x{DAY}", window="40x3000"),
            **gauge("last_run_timestamp_seconds", AT, f"0+60x{DAY} {DAY * 60}x200"),
        },
        DAY + 120,
    ),
    Case(
        "AgentWithoutRuns",
        "for half an hour",
        False,
        {
            **runs(f"0+1x{DAY}", window="40x3000"),
            **gauge("last_run_timestamp_seconds", AT, f"0+60x{DAY} {DAY * 60}x200"),
        },
        DAY + 30,
    ),
    Case(
        "AgentWithoutRuns",
        "it never runs often",
        False,
        {**runs("0x700 50x2000"), **gauge("last_run_timestamp_seconds", AT, "0x2000")},
        DAY + 120,
    ),
    Case(
        "ReliabilityTelemetryLost",
        "two spans in a hundred are refused",
        True,
        {
            **ours("spans_total", 'disposition="received"', "0+1000x60"),
            **ours("spans_total", 'disposition="refused",reason="open_runs"', "0+20x60"),
        },
        40,
    ),
    Case(
        "ReliabilityTelemetryLost",
        "one in a thousand is late",
        False,
        {
            **ours("spans_total", 'disposition="received"', "0+1000x60"),
            **ours("spans_total", 'disposition="late"', "0+1x60"),
        },
        40,
    ),
    Case(
        "ReliabilityTelemetryLost",
        "many, of a handful",
        False,
        {
            **ours("spans_total", 'disposition="received"', "0+10x60"),
            **ours("spans_total", 'disposition="late"', "0+5x60"),
        },
        40,
    ),
    Case(
        "ReliabilityTelemetryLost",
        "nobody's agents: other spans are not lost",
        False,
        {
            **ours("spans_total", 'disposition="received"', "0+1000x60"),
            **ours("spans_total", 'disposition="other"', "0+900x60"),
        },
        40,
    ),
    Case(
        "ReliabilityRequestsRefused",
        "one request in five",
        True,
        {
            **ours("requests_total", 'outcome="accepted"', "0+8x60"),
            **ours("requests_total", 'outcome="unavailable"', "0+2x60"),
        },
        40,
    ),
    Case(
        "ReliabilityRequestsRefused",
        "some are partly taken",
        False,
        {
            **ours("requests_total", 'outcome="accepted"', "0+8x60"),
            **ours("requests_total", 'outcome="partial"', "0+2x60"),
        },
        40,
    ),
    Case(
        "ReliabilityRequestsRefused",
        "one of three",
        False,
        {
            **ours("requests_total", 'outcome="accepted"', "0x20 2x60"),
            **ours("requests_total", 'outcome="invalid"', "0x20 1x60"),
        },
        40,
    ),
    Case(
        "ReliabilityExportFailing",
        "no push arrives",
        True,
        ours("exports_total", 'sink="metrics",outcome="unavailable"', "0+1x60"),
        40,
        {"sink": "metrics"},
    ),
    Case(
        "ReliabilityExportFailing",
        "one in ten does not",
        False,
        {
            **ours("exports_total", 'sink="metrics",outcome="unavailable"', "0+1x60"),
            **ours("exports_total", 'sink="metrics",outcome="accepted"', "0+9x60"),
        },
        40,
    ),
    Case(
        "ReliabilityExportFailing",
        "the first two",
        False,
        ours("exports_total", 'sink="metrics",outcome="unavailable"', "0x38 1 2"),
        40,
    ),
    Case(
        "ReliabilityLimitReached",
        "something finds no place",
        True,
        ours("limit_hits_total", 'limit="agents"', "0x20 0+1x60"),
        40,
        {"limit": "agents"},
    ),
    Case(
        "ReliabilityLimitReached",
        "everything does",
        False,
        ours("limit_hits_total", 'limit="agents"', "7x60"),
        40,
    ),
    Case(
        "ReliabilityServiceDown",
        "it was there an hour ago",
        True,
        ours("ready", "", "1x30 stale"),
        90,
        {"severity": "critical"},
    ),
    Case("ReliabilityServiceDown", "it is there", False, ours("ready", "", "1x200"), 90),
    Case(
        "ReliabilityServiceDown",
        "one of two went",
        False,
        {**ours("ready", "", "1x30 stale"), 'otel_reliability_ready{instance="b:9464",job="reliability"}': "1x200"},
        90,
    ),
    Case(
        "ReliabilityServiceDown",
        "nobody has a service: agents measure in their own process",
        False,
        {**BUSY, **FULL},
        90,
    ),
    Case("ReliabilityServiceNotReady", "for ten minutes", True, ours("ready", "", "1x30 0x60"), 42),
    Case("ReliabilityServiceNotReady", "for two", False, ours("ready", "", "1x30 0x2 1x60"), 42),
    Case(
        "ReliabilityKafkaLagging",
        "more and more is not read",
        True,
        ours("kafka_lag", 'topic="spans",partition="0"', "0+100x120"),
        60,
        {"topic": "spans", "severity": "warning"},
    ),
    Case(
        "ReliabilityKafkaLagging",
        "an outage is being worked off",
        False,
        ours("kafka_lag", 'topic="spans",partition="0"', "100000-500x120"),
        60,
    ),
    Case(
        "ReliabilityKafkaLagging",
        "a handful",
        False,
        ours("kafka_lag", 'topic="spans",partition="0"', "0+5x120"),
        60,
    ),
    Case(
        "ReliabilityKafkaDeadLetters",
        "the first of its kind",
        True,
        ours("kafka_dead_letters_total", 'reason="undecodable"', "_x30 1x60"),
        40,
        {"reason": "undecodable"},
    ),
    Case(
        "ReliabilityKafkaDeadLetters",
        "one more",
        True,
        ours("kafka_dead_letters_total", 'reason="undecodable"', "3x50 4x60"),
        60,
    ),
    Case(
        "ReliabilityKafkaDeadLetters",
        "none since",
        False,
        ours("kafka_dead_letters_total", 'reason="undecodable"', "3x200"),
        60,
    ),
)
