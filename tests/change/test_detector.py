from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.detector import BLIND, Detector, Status
from otel_reliability.change.signals import SIGNALS
from otel_reliability.config import ChangeSettings
from otel_reliability.model.observation import Observation
from tests.change.build import exchangeable, observation, u_of
from tests.change.simulate import Pool, Streams
from tests.metrics.reference import similarity

SETTINGS = ChangeSettings(runs_per_false_alarm=200)


def passed(detector: Detector, observations: list[Observation]) -> list[Alarm]:
    return [alarm for one in observations if (alarm := detector.add(one)) is not None]


def shifted(n: int = 100, after: int = 60) -> list[Observation]:
    """Observations whose paths become three calls longer after the n-th."""
    return exchangeable(n) + exchangeable(after, seed=1, first=n + 1, longer=3)


def test_it_is_the_formula() -> None:
    """At every observation the evidence of each signal is what the array form of the definition
    gives, absent ones included.
    """
    observations = exchangeable(700)
    detector = Detector(ChangeSettings(runs_per_false_alarm=1e300))
    signals = tuple(SIGNALS)
    streams = Streams(pool_of(observations), 1)
    for n, one in enumerate(observations, 1):
        detector.add(one)
        u = np.array([[u_of(one.id, signal, n) for signal in signals]])
        mean = streams.step(np.array([n - 1]), u)
        got = detector.evidence()
        expected = {
            s: math.log10(r) for s, r in zip(signals, streams.evidence[0], strict=True) if r
        }
        assert got.signals == pytest.approx(expected, abs=1e-9)
        assert got.log10 == (pytest.approx(math.log10(mean[0]), abs=1e-9) if mean[0] else None)


def pool_of(observations: list[Observation]) -> Pool:
    values = [[SIGNALS[signal].read(one) for signal in SIGNALS] for one in observations]
    paths = [one.path for one in observations]
    distances = [
        [math.nan if p is None or q is None else 1 - similarity(p, q) for q in paths] for p in paths
    ]
    return Pool(np.array(values, dtype=np.float64), np.array(distances))


def test_a_change_is_told_with_what_changed() -> None:
    (alarm,) = passed(Detector(SETTINGS), shifted())
    told = {one.signal: one for one in alarm.signals}
    assert 100 < alarm.observation <= 125
    assert alarm.signal == max(alarm.signals, key=lambda one: one.evidence).signal
    assert abs(told["calls"].since_observation - 101) <= 3
    assert told["calls"].since_ns == told["calls"].since_observation * 10**9
    before = told["calls"].before
    after = told["calls"].after
    assert before is not None
    assert after is not None
    assert before.mean < 2.5 < after.mean
    assert all(one.evidence >= SETTINGS.runs_per_false_alarm / 2 for one in alarm.signals[1:])


def test_tools_that_came_and_went_are_told() -> None:
    after = [observation(n, ("search", "cancel")) for n in range(90, 140)]
    (alarm, *_) = passed(
        Detector(SETTINGS), [observation(n, ("search", "book")) for n in range(90)] + after
    )
    assert [shift.tool for shift in alarm.tools] == ["book", "cancel"]
    assert [shift.before for shift in alarm.tools] == [1, 0]
    assert alarm.tools[0].after == pytest.approx(0.1, abs=0.2)
    assert alarm.tools[1].after == pytest.approx(0.9, abs=0.2)


def test_it_is_blind_while_it_learns() -> None:
    detector = Detector(SETTINGS)
    blinds = list[int]()
    for one in shifted():
        alarm = detector.add(one)
        blinds.append(detector.evidence().blind)
        if alarm is not None:
            break
    assert blinds[: BLIND + 1] == [*range(BLIND - 1, -1, -1), 0]
    assert blinds[-1] == BLIND
    assert detector.evidence().status is Status.LEARNING
    assert detector.evidence()[3:5] == (None, {})
    late = [detector.add(observation(n, ("mail",) * 9)) for n in range(1_000, 1_000 + BLIND)]
    assert late == [None] * BLIND


def test_after_an_alarm_it_learns_anew() -> None:
    detector = Detector(SETTINGS)
    alarms = passed(detector, shifted(100, 120) + exchangeable(60, seed=5, first=221))
    assert [100 < alarms[0].observation < 130, 220 < alarms[1].observation < 260] == [True, True]
    assert len(detector.alarms) == 2
    assert detector.alarms == tuple(alarms)


def test_reset_learns_anew_and_keeps_the_record() -> None:
    detector = Detector(SETTINGS)
    passed(detector, shifted())
    detector.reset()
    reading = detector.evidence()
    assert (reading.blind, len(detector.alarms), reading.observations) == (BLIND, 1, 160)
    assert not passed(detector, exchangeable(100, seed=1, first=200, longer=3))


def test_a_constant_agent_never_alarms() -> None:
    detector = Detector(ChangeSettings(runs_per_false_alarm=2))
    assert not passed(detector, [observation(n) for n in range(2_000)])
    assert (detector.evidence().status, detector.evidence().log10) == (Status.WATCHING, None)


def test_an_agent_without_evidence_is_silent() -> None:
    bare = [Observation(str(n), n, n, None, None, None, None, None, None) for n in range(200)]
    detector = Detector(SETTINGS)
    assert not passed(detector, bare)
    assert detector.evidence()[3:5] == (None, {})
    assert detector.evidence().status is Status.WATCHING


def test_no_verdict_where_tasks_stand_in_blocks() -> None:
    """Numbers that change with the task are no change of the agent: nothing is told, and the
    reading says why.
    """
    observations = [
        observation(n, ("search",) * (1 + n // 40 % 3), task=f"t{n // 40}") for n in range(400)
    ]
    detector = Detector(SETTINGS)
    assert not passed(detector, observations)
    assert passed(Detector(SETTINGS), [replace(one, task=None) for one in observations])
    reading = detector.evidence()
    assert reading.status is Status.BLOCKS
    assert reading[3:5] == (None, {})


@given(st.integers(0, 170), st.integers(0, 3))
def test_a_restart_changes_nothing(cut: int, seed: int) -> None:
    observations = exchangeable(100, seed) + exchangeable(70, seed + 10, 101, longer=3)
    whole = Detector(SETTINGS)
    first = Detector(SETTINGS)
    expected = passed(whole, observations)
    before = passed(first, observations[:cut])
    second = restarted(first)
    assert second.evidence() == first.evidence()
    assert before + passed(second, observations[cut:]) == expected
    assert second.evidence() == whole.evidence()
    assert plain(second) == plain(whole)


def plain(detector: Detector) -> Any:
    return json.loads(json.dumps(detector.to_data()))


def restarted(detector: Detector, pinned: tuple[Observation, ...] = ()) -> Detector:
    return Detector.from_data(plain(detector), SETTINGS, pinned)


def test_other_signals_learn_anew() -> None:
    """A state of other signals cannot be gone on with: the alarms stay, the rest
    is learnt again.
    """
    detector = Detector(SETTINGS)
    passed(detector, shifted())
    data = plain(detector)
    del data["signals"]["calls"]
    other = Detector.from_data(data, SETTINGS)
    assert (other.alarms, other.evidence().blind) == (detector.alarms, BLIND)


def test_the_state_is_bounded() -> None:
    detector = Detector(ChangeSettings())
    sizes = list[int]()
    for n in range(3_000):
        detector.add(observation(n, (f"tool-{n % 977}",) * 12, task=str(n)))
        if n % 100 == 99:
            sizes.append(len(json.dumps(detector.to_data())))
    assert max(sizes) < 60_000
    assert max(sizes[15:]) < 1.2 * max(sizes[:15])


PINNED = tuple(exchangeable(120, seed=7))


def test_with_a_pinned_recording_it_is_never_blind() -> None:
    detector = Detector(SETTINGS, PINNED)
    assert detector.evidence()[:3] == (Status.WATCHING, 0, 0)
    (alarm, *_) = passed(detector, exchangeable(40, seed=1, first=1, longer=3))
    assert alarm.observation < 30
    assert 1 <= alarm.since_observation <= alarm.observation


def test_a_pinned_recording_itself_raises_no_evidence() -> None:
    detector = Detector(SETTINGS, shifted(100, 100))
    assert (detector.evidence().log10, detector.alarms) == (None, ())


def test_an_alarm_leads_back_to_the_pinned_recording() -> None:
    alarms = passed(Detector(SETTINGS, PINNED), exchangeable(200, seed=1, longer=3))
    assert len(alarms) >= 3


def test_a_short_pinned_recording_is_no_evidence() -> None:
    detector = Detector(SETTINGS, PINNED[: BLIND - 1])
    assert not passed(detector, shifted())
    assert detector.evidence()[:5] == (Status.SHORT_REFERENCE, 160, 0, None, {})


def test_a_restart_keeps_to_the_pinned_recording() -> None:
    detector = Detector(SETTINGS, PINNED)
    passed(detector, exchangeable(10))
    assert restarted(detector, pinned=PINNED).evidence() == detector.evidence()
    assert restarted(detector).evidence().blind == BLIND


def test_a_fall_of_cache_hits_is_a_change_of_any_agent_that_reports_them() -> None:
    def hits(n: int, share: int) -> Observation:
        return replace(exchangeable(n + 1)[n], cached_tokens=share + n % 5, input_tokens=100)

    detector = Detector(SETTINGS)
    alarms = passed(detector, [hits(n, 80 if n < 100 else 20) for n in range(150)])
    without = Detector(SETTINGS)
    passed(without, exchangeable(100))

    assert [alarm.signal for alarm in alarms] == ["cache_hit_share"]
    assert 98 <= alarms[0].since_observation <= 104
    assert "cache_hit_share" not in without.to_data()["signals"]


def test_further_signals_survive_a_restart() -> None:
    seen = [replace(one, cached_tokens=1, input_tokens=2) for one in exchangeable(90)]
    detector = Detector(SETTINGS)
    passed(detector, seen)
    data = detector.to_data()
    torn: dict[str, Any] = {**data, "signals": {**data["signals"], "edits_per_prompt": {}}}

    assert data["signals"].keys() == {*SIGNALS, "cache_hit_share"}
    assert Detector.from_data(data, SETTINGS).to_data() == data
    assert Detector.from_data(torn, SETTINGS).to_data()["signals"].keys() == SIGNALS.keys()
