"""Judgements that come before their run wait for it, up to a limit."""

from __future__ import annotations

import pytest

from otel_reliability.assembly.assembler import Assembler
from otel_reliability.assembly.evaluations import WAIT
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.model.span import Evaluation
from otel_reliability.testing import agent, trace_id
from tests.assembly.rebuilding import used

GOOD = Evaluation("success", 1.0, None, 1)
OF_A_TRACE = [GOOD._replace(trace_id=trace_id(number)) for number in (1, 2)]
OF_A_RESPONSE = [GOOD._replace(response_id=f"response-{number}") for number in (1, 2)]


@pytest.mark.parametrize("told", [OF_A_TRACE, OF_A_RESPONSE, [OF_A_TRACE[0], OF_A_RESPONSE[1]]])
def test_of_one_beyond_the_limit_nothing_is_left(told: list[Evaluation]) -> None:
    """It is counted. The others wait on, and go when they have waited too long."""
    assembler = Assembler(Settings(limits=LimitSettings(evaluations=1)))
    for one in told:
        assembler.evaluate(one, 0.0)
    assembler.tick(1.0)
    assert used(assembler)["waiting_evaluations"] == 1
    assert assembler.accounts == {("evaluation_refused", "limit"): 1}

    assembler.tick(WAIT + 1.0)
    assert used(assembler)["waiting_evaluations"] == 0
    assert assembler.accounts["evaluation_refused", "no_run"] == 1


def test_one_that_was_refused_is_taken_once_there_is_room() -> None:
    """The run it is about has come by then."""
    assembler = Assembler(Settings(limits=LimitSettings(evaluations=1)))
    for one in OF_A_TRACE:
        assembler.evaluate(one, 0.0)
    assembler.add(agent(1, trace=2), 0.0)
    assembler.evaluate(OF_A_TRACE[1], 0.0)
    (told,) = assembler.tick(3.0)
    assert told.run.evaluations == (OF_A_TRACE[1],)
