"""Write docs/reference/conventions.md from the conventions and from what the captures show: `python
-m tests.corpora.matrix`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from otel_reliability.conventions import TABLE
from otel_reliability.conventions.base import Convention
from tests.corpora import session_files
from tests.corpora.compare import FIELDS, Matched, match
from tests.corpora.known import EXCEPTIONS, RAW, UNTIL_USING_SESSION, is_held, misses, why_not_held
from tests.corpora.labels import LABELS
from tests.corpora.recordings import CAPTURES, rebuilt_capture, truth
from tests.corpora.test_content import ONLY_WITH_CONTENT

TESTS: Final = Path(__file__).resolve().parents[1] / "conventions"
QUIRK: Final = re.compile(r"test_q(\d\d)_")
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conventions.md"

HEAD: Final = """<!-- Made from the code and the recordings by `python -m tests.corpora.matrix`. -->

# Conventions

Each instrumentation describes agents with its own attributes. One *convention* reads each of them: a file in
`otel_reliability/conventions/` with the attribute names in it. The first convention that recognises a span reads it, so a span
that carries two of them counts once. `otel-reliability inspect FILE` shows which ones read your spans; [Add a
convention](../contributing/add-a-convention.md) shows how to add one.

"""

READ: Final = """## What is read

Conventions of a scope are asked about spans of that scope only, and before the others.

| convention | scope | what it reads | known from |
|---|---|---|---|
"""

SHOWN: Final = """
## What each instrumentation contains

Recordings of real frameworks against fake models, compared run by run with what the program that made them knew: clean runs,
retries, parallel calls, hand-offs, sub-agents, crashes, conversations, remote parents, concurrency. The tests hold every cell.

- *exact*: in every run that has it, whether content (prompts, arguments, results) is captured or not.
- *content*: exact where content is captured; without it absent, never wrong, but for tokens of Google ADK 1.5 [{adk}].
- — : not in the telemetry. *n of m*: exact in n of the m runs whose telemetry holds it. The notes give the reasons.
- An empty cell: no run of the recording has it.

"""

RAW_LOOPS: Final = """
## Where there is nothing to rebuild

Model calls in traces of their own, without an agent span, make no runs: they are counted, and `inspect` names them. A tool
server's own spans are the other end of calls that the client reports.

| recording | instrumentation |
|---|---|
"""

SESSIONS: Final = """
## What session files of coding agents contain

Recordings of the command-line agents against a fake model server, compared prompt by prompt with what the server answered and
what the commands did. Where a number is not in the files it is unknown, with the finding `session_file_partial` where it could
seem known; no number is wrong. The tests hold every cell.

"""

NOT_IN_FILES: Final = """
Not counted above, since no file of these releases holds it:

| agent | not in its files |
|---|---|
| Claude Code | by the terminal: whether Esc at the question for permission refused the call or cancelled it (it reads as cancelled); until 1.0, that a prompt was stopped |
| Codex | the last answer of a background sub-agent that still ran at the end; refusals; 0.27: versions, times of single calls |
| Gemini CLI | tokens of compactions; failed requests, refusals, the limit of turns; a call that was killed with the program (the path is unknown then); 0.1 to 0.5: all but prompts |
| Copilot CLI | before about 0.0.370: tokens, models |
| Qwen Code | refusals, the limit of turns; requests of the program's own helpers in editors |
| opencode | requests for a title |
"""

QUIRKED: Final = """
## Quirks

What misleads a plain reading, and the rule for it. The code cites these numbers; each has a small span in `tests/conventions/`.

| | where | what |
|---|---|---|
"""

FOOT: Final = """
## What no instrumentation contains

- *Soft errors*: a tool that returns an error as its result looks like a success. `tools.soft_errors` names the results that
  mean failure.
- *Success*: an end without an error is `completed`, which is no success. Set `reliability.run.success`, an evaluation, or
  `mapping.outcome`.
- *Context windows*: no convention has an attribute for them. `context_limits` in the settings, or the extra `prices`.
- *Prices*: few instrumentations report a cost. [Where it comes from](../explanation/runs.md#cost).
- *Confidence*: `reliability.run.confidence`, or `mapping.confidence`.

Agent names, sessions, tasks, outcomes, confidence and cost can be mapped from attributes of yours, tools renamed, ignored, and
variants of a name merged by pattern ([settings](settings.md)). Some instrumentations make up a conversation id for each run
that was given none; such sessions have one run each.
"""

SOURCE: Final = re.compile(r"Sources?: (.+?)\.(?: |$)")
_ADK: Final = "without the model's response, its output tokens cannot be separated from the total"


class Notes:
    """Footnotes, numbered as they come; the same words have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, words: str) -> int:
        return self._numbers.setdefault(words, len(self._numbers) + 1)

    def mark(self, *words: str) -> str:
        return (
            f" [{', '.join(str(number) for number in sorted({self.number(one) for one in words}))}]"
        )

    def lines(self) -> Iterator[str]:
        return (
            f"{number}. {words[0].upper()}{words[1:]}.\n" for words, number in self._numbers.items()
        )


def page() -> str:
    notes = Notes()
    shown = SHOWN.format(adk=notes.number(_ADK))
    rows = "".join(_row(capture, notes) for capture in CAPTURES if capture not in RAW)
    header = (
        "| framework | instrumentation | runs | "
        + " | ".join(FIELDS)
        + " |\n"
        + "|---" * (len(FIELDS) + 3)
        + "|\n"
    )
    raw = "".join(f"| {' | '.join(LABELS[capture])} |\n" for capture in CAPTURES if capture in RAW)
    read = "".join(map(_read, TABLE))
    parts = (
        HEAD,
        READ,
        read,
        shown,
        header,
        rows,
        "\n",
        *notes.lines(),
        RAW_LOOPS,
        raw,
        SESSIONS,
        *session_files.table(),
        NOT_IN_FILES,
        QUIRKED,
        *_quirks(),
        FOOT,
    )
    return "".join(parts)


def _read(convention: Convention) -> str:
    about = " ".join((inspect.getdoc(type(convention)) or "").split())
    source = SOURCE.search(
        " ".join((sys.modules[type(convention).__module__].__doc__ or "").split())
    )
    scopes = ", ".join(f"`{scope}…`" for scope in convention.scopes) or "any"
    return f"| {convention.name} | {scopes} | {about} | {source[1] if source else ''} |\n"


def _quirks() -> Iterator[str]:
    """A row for each quirk: where it is met, and what its tests say."""
    told: dict[int, list[tuple[str, str]]] = {}
    for file in sorted(TESTS.glob("test_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        where = (ast.get_docstring(tree) or "").rstrip(".")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and (number := QUIRK.match(node.name)):
                told.setdefault(int(number[1]), []).append(
                    (where, " ".join((ast.get_docstring(node) or "").split()))
                )
    for number, found in sorted(told.items()):
        places = "; ".join(dict.fromkeys(where for where, _ in found))
        yield f"| Q{number} | {places} | {' '.join(what for _, what in found)} |\n"


def _row(capture: str, notes: Notes) -> str:
    found = match(truth(capture), rebuilt_capture(capture).tops)
    cells = [
        *LABELS[capture],
        str(len(found.pairs)),
        *(_cell(capture, field, found, notes) for field in FIELDS),
    ]
    return f"| {' | '.join(cells)} |\n"


def _cell(capture: str, field: str, found: Matched, notes: Notes) -> str:
    why = why_not_held(truth(capture), field)
    if why is not None and why != UNTIL_USING_SESSION:
        return "—" + notes.mark(why)
    held = sum(is_held(truth(capture), field, true) for true, _ in found.pairs)
    wrong = misses(truth(capture), field, found.pairs)
    reasons = [EXCEPTIONS[capture, run, field] for run in wrong] + ([why] if why else [])
    if (capture, field) == ("google_adk15-native", "tokens"):
        reasons.append(_ADK)
    word = "content" if (capture, field) in ONLY_WITH_CONTENT else "exact"
    if wrong:
        word = f"{held - len(wrong)} of {held}" + (", content" if word == "content" else "")
    return (word + notes.mark(*reasons) if reasons else word) if held else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
