from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import Settings, ToolSettings
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.model.span import AgentSpan, Call, ToolFacts
from otel_reliability.testing import agent, tool
from tests.assembly.rebuilding import run_of

A = b"a"
B = b"b"


def run_with(*calls: AgentSpan) -> Run:
    return run_of(agent(1, end=99), *calls)


def marks(run: Run) -> list[str]:
    """Of each call in the order of the clock: the number of its retry, `again` for a repeat,
    nothing.
    """
    assert run.tool_calls is not None
    return [
        str(call.chain) if call.retry else "again" if call.repeat else "" for call in run.tool_calls
    ]


def attempts(
    *failed: bool, arguments: bytes | None = A, result: bytes | None = None, name: str = "search"
) -> list[AgentSpan]:
    """The same call again and again, a second each."""
    return [
        tool(
            n + 2,
            1,
            name,
            start=2 * n,
            arguments=arguments,
            failed=bad,
            result=None if bad else result,
        )
        for n, bad in enumerate(failed)
    ]


def test_a_call_after_the_same_that_failed_is_a_retry() -> None:
    run = run_with(*attempts(True, True, False))

    assert marks(run) == ["", "1", "2"]
    assert (run.retries, run.longest_retry_chain) == (2, 2)


def test_a_success_ends_the_chain() -> None:
    assert marks(run_with(*attempts(True, False, True, True))) == ["", "1", "", "1"]


def test_it_must_have_failed_before_this_one_began() -> None:
    together = [
        tool(2, 1, arguments=A, start=0, end=3, failed=True),
        tool(3, 1, arguments=A, start=2, end=4),
    ]

    assert marks(run_with(*together)) == ["", ""]
    assert marks(run_with(together[0], replace(together[1], start_ns=together[0].end_ns))) == [
        "",
        "1",
    ]


def test_the_latest_earlier_one_counts() -> None:
    assert marks(run_with(*attempts(True, False, False))) == ["", "1", "again"]


def test_where_arguments_are_unknown_the_tool_counts() -> None:
    """On either side: the latest earlier call of the tool. The run says that arguments were
    unknown.
    """
    run = run_with(*attempts(True, True, False, arguments=None))

    assert (marks(run), run.arguments_known) == (["", "1", "2"], False)
    mixed = [
        tool(2, 1, arguments=None, failed=True),
        tool(3, 1, arguments=A, start=2, failed=True),
        tool(4, 1, arguments=None, start=4),
    ]
    assert marks(run_with(*mixed)) == ["", "1", "2"]
    assert run_with(*attempts(True, False)).arguments_known


def test_the_same_call_after_a_success_is_a_repeat() -> None:
    assert marks(run_with(*attempts(False, False))) == ["", "again"]
    same = attempts(False, False, result=b"1")
    assert marks(run_with(*same)) == ["", "again"]
    assert marks(run_with(same[0], attempts(False, False, result=b"2")[1])) == ["", ""]
    assert run_with(*same).retries == 0


def test_a_repeat_needs_its_arguments_known() -> None:
    assert marks(run_with(*attempts(False, False, arguments=None))) == ["", ""]


def test_attempts_of_a_sub_agent_count_for_the_run_above_too() -> None:
    spans = [
        agent(1, end=99),
        tool(2, 1, failed=True),
        agent(3, 1, "inner", start=2, end=9),
        tool(4, 3, start=3),
    ]

    assert marks(run_of(*spans)) == ["", "1"]


def called(*names: str, **of: str) -> list[AgentSpan]:
    """These calls, one after the other, all well; with the same result each time, unless `of` gives
    the results of a tool.
    """
    left = {name: iter(results.split()) for name, results in of.items()}
    return [
        tool(
            n + 2,
            1,
            name,
            start=2 * n,
            arguments=A,
            result=next(left.get(name, iter("=")), "=").encode(),
        )
        for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("run_tests edit run_tests", "- - -"),
        ("run_tests get_log run_tests", "- - again"),
        ("run_tests run_tests run_tests run_tests", "- again again again"),
        ("run_tests edit run_tests edit", "- - again again"),
        ("run_tests edit run_tests edit run_tests", "- - again again again"),
        ("a b c a b c", "- - - again again again"),
        ("a b c d a b c d", "- - - - again again again again"),
        ("a b c d e a b c d e", "- - - - - - - - - -"),
        ("ls write ls", "- - -"),
        ("write ls scroll_down ls", "- - - again"),
    ],
)
def test_a_repeat_needs_an_unchanged_world(calls: str, expected: str) -> None:
    """A call with an effect between two equal calls makes the second one work; only in a cycle does
    it count.
    """
    assert [mark or "-" for mark in marks(run_with(*called(*calls.split())))] == expected.split()


def test_a_failed_call_changes_nothing() -> None:
    """It has no effect, so what is called after it is a loop."""
    calls = called("run_tests", "edit", "run_tests")
    calls[1] = replace(
        calls[1], failed=True, facts=ToolFacts((Call("edit", None, A, failed=True),))
    )

    assert marks(run_with(*calls)) == ["", "", "again"]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("run_tests! read_file edit run_tests! run_tests", "- - - - 1"),
        ("run_tests! book_table run_tests", "- - 1"),
        ("run_tests! edit! run_tests", "- - 1"),
        ("edit run_tests! edit run_tests! edit run_tests!", "- - again 1 again 2"),
    ],
)
def test_a_call_after_an_edit_of_a_file_is_no_retry(calls: str, expected: str) -> None:
    """What fails (`!`) is tried again once its cause is mended: work. The same edits in a cycle
    mend nothing.
    """
    spans = [
        tool(n + 2, 1, name.strip("!"), start=2 * n, arguments=A, failed=name.endswith("!"))
        for n, name in enumerate(calls.split())
    ]
    assert [mark or "-" for mark in marks(run_with(*spans))] == expected.split()


def test_a_cycle_with_other_results_makes_progress() -> None:
    assert marks(run_with(*called("run_tests", "edit", "run_tests", "edit", run_tests="1 2"))) == [
        "",
        "",
        "",
        "again",
    ]


def test_what_changes_the_world_is_the_users_to_say() -> None:
    calls = called("run_tests", "edit", "run_tests", "get_order", "run_tests")
    settings = Settings(tools=ToolSettings(reads=("edit",), effects=("get_order",)))
    run = run_of(agent(1, end=99), *calls, settings=settings)

    assert marks(run) == ["", "", "again", "", ""]
    assert [call.has_effect for call in run.tool_calls or ()] == [True, False, True, True, True]


Drawn = tuple[str, bytes | None, bool, int, int]
_calls = st.lists(
    st.tuples(
        st.sampled_from(("x", "edit", "get_z")),
        st.sampled_from((None, A, B)),
        st.booleans(),
        st.integers(0, 20),
        st.integers(0, 6),
    ),
    max_size=16,
)


def by_the_rule(calls: Sequence[ToolCall]) -> list[str]:
    """The marks by the rule as it is written: the latest earlier call of the tool and arguments
    that had ended.
    """
    found: list[str] = []
    for at, this in enumerate(calls):
        earlier = [
            n
            for n, other in enumerate(calls[:at])
            if other.end_ns <= this.start_ns
            and other.name == this.name
            and (None in (other.arguments, this.arguments) or other.arguments == this.arguments)
        ]
        if not earlier:
            found.append("")
        elif not calls[earlier[-1]].ok:
            chain = found[earlier[-1]]
            edits = [call for call in calls if call.name == "edit"]
            retry = was_unchanged(calls, earlier[-1], at, edits) or is_in_cycle(calls, at)
            found.append(str(int(chain) + 1 if chain.isdigit() else 1) if retry else "")
        else:
            known = None not in (calls[earlier[-1]].arguments, this.arguments)
            world = was_unchanged(calls, earlier[-1], at, calls) or is_in_cycle(calls, at)
            found.append("again" if known and this.ok and world else "")
    return found


def was_unchanged(
    calls: Sequence[ToolCall], earlier: int, at: int, changes: Sequence[ToolCall]
) -> bool:
    """No other of the calls that change something ended, with an effect, between the starts of the
    two.
    """
    first = calls[earlier]
    this = calls[at]
    return not any(
        other.has_effect
        and other in changes
        and (other.name, other.arguments) != (this.name, this.arguments)
        and other.end_ns <= this.start_ns
        and (other.end_ns, n) > (first.start_ns, earlier)
        for n, other in enumerate(calls[:at])
    )


def is_in_cycle(calls: Sequence[ToolCall], at: int) -> bool:
    """It is in a stretch that goes on like its first 2, 3 or 4 calls, which are different, after
    the first round.
    """
    same = [(call.name, call.arguments) for call in calls]
    for length in (2, 3, 4):
        begin = end = at
        while (
            begin >= length and same[begin][1] is not None and same[begin] == same[begin - length]
        ):
            begin -= 1
        while (
            end < len(same)
            and end >= length
            and same[end][1] is not None
            and same[end] == same[end - length]
        ):
            end += 1
        stretch = same[begin + 1 : end]
        if begin < at and len(stretch) >= length and len(set(stretch[:length])) == length:
            return True
    return False


@given(_calls)
def test_the_marks_are_those_of_the_rule(drawn: list[Drawn]) -> None:
    calls = [
        tool(n + 2, 1, name, arguments=arguments, failed=failed, start=start, end=start + length)
        for n, (name, arguments, failed, start, length) in enumerate(drawn)
    ]
    run = run_with(*calls)

    assert marks(run) == by_the_rule(run.tool_calls or ())
