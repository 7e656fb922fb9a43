"""Prompts of session files against the truth of their recordings, number by number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.model.flaws import flaws_of
from otel_reliability.model.run import Run
from otel_reliability.recording import Recording
from otel_reliability.sources.from_plain import time_ns
from tests.shared import SHARED

FOLDER: Final = SHARED / "corpora" / "sessions"
NAMES: Final = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "copilot_cli": "Copilot CLI",
    "gemini_cli": "Gemini CLI",
    "opencode": "opencode",
    "qwen_code": "Qwen Code",
}
STEPS: Final = frozenset({"ok", "failed", "cancelled"})
FAILED: Final = frozenset({"failed"})
UNFINISHED: Final = frozenset({"unfinished"})
REASONS: Final = {
    "claude_code_2.1.47": "output tokens: each line is written when its block ends, with the usage "
    "of the beginning (1 token) and no stop reason",
    "codex_0.27": "tokens: no record has any",
    "gemini_cli_0.22": "tokens of answers that hold calls and no text: they are merged into the "
    "message before",
    "gemini_cli_0.6": "tool calls and answers without text, outside of a terminal: nothing is "
    "written of them; so tokens and paths are unknown",
    "opencode": "tokens of an answer that was stopped: they are written when a step ends",
}
"""What the files of a release do not hold, of what was counted; read in the files themselves."""
_NEAR_NS: Final = 3_000_000_000
"""Between the truth's start of a turn that only compacts, and its run; not all agents write one."""


class Prompt(NamedTuple):
    """A prompt whose truth is known, and its run; None where it was not found."""

    truth: dict[str, Any]
    run: Run | None

    @property
    def same_calls(self) -> bool:
        """True where each call that was executed is a call of the run; the file may say more of
        one whose process ended first.
        """
        given = () if self.run is None else self.run.tool_calls or ()
        found = Counter(short(call.name) for call in given)
        executed = self._names(STEPS)
        return executed <= found <= executed + self._names(UNFINISHED)

    @property
    def same_failures(self) -> bool:
        """True where as many calls failed."""
        given = () if self.run is None else self.run.tool_calls or ()
        return sum(not call.ok for call in given) == self._names(FAILED).total()

    @property
    def same_tokens(self) -> bool:
        """Requests that no user waits for, such as for a title, may count or not."""
        truth, run = self.truth, self.run
        main = truth["input_tokens"], truth["output_tokens"]
        both = main[0] + truth["side_input_tokens"], main[1] + truth["side_output_tokens"]
        found = (None, None) if run is None else (run.input_tokens, run.output_tokens)
        return found in (main, both) or (found == (None, None) and main == (0, 0))

    @property
    def is_named(self) -> bool:
        """True where a finding says that the file holds a part of the run, or it has no tokens."""
        run = self.run
        is_partial = run is not None and "session_file_partial" in flaws_of(run)
        return is_partial or (run is not None and run.tokens is None)

    def _names(self, statuses: frozenset[str]) -> Counter[str]:
        return Counter(
            short(call["name"])
            for call in self.truth["tool_calls"]
            if call["status"] in statuses and call.get("in_file", True) and not call.get("wrapper")
        )


def short(name: str) -> str:
    """Return the name of a tool without the server that it came from."""
    return name.rpartition("::")[2].rpartition("__")[2]


def runs_in(*folders: Path) -> list[Run]:
    """Return the top-level runs of the files below folders."""
    runs: list[Run] = []
    recording = Recording(final=runs.extend)
    recording.read_all(folders)
    recording.close()
    return [run for run in runs if not run.nested]


def releases() -> list[str]:
    """Return the recorded releases, by their folder."""
    found = (path.parent.parent.name for path in FOLDER.glob("*/*/truth.json"))
    return sorted({name for name in found if name.partition("_")[0] not in ("samples", "with")})


class Recorded(NamedTuple):
    """The prompts of a release, and the runs that no prompt began."""

    prompts: list[Prompt]
    extra: list[Run]


def recorded(release: str) -> Recorded:
    """Return what was recorded of a release; turns that only compact are no prompts."""
    found = Recorded([], [])
    for file in sorted((FOLDER / release).glob("*/truth.json")):
        left = runs_in(file.parent / "home")
        for truth in json.loads(file.read_text())["runs"]:
            start = time_ns(truth["started"])
            is_prompt = truth.get("kind") != "compaction"
            run = min(left, key=lambda run: abs(run.start_ns - start), default=None)
            if run is not None and (is_prompt or abs(run.start_ns - start) < _NEAR_NS):
                left.remove(run)
            if is_prompt:
                found.prompts.append(Prompt(truth, run))
        found.extra.extend(run for run in left if run.model_calls or run.tool_calls)
    return found


def version_of(release: str) -> str:
    """Return the version of a release that was recorded."""
    first = next(iter(sorted((FOLDER / release).glob("*/truth.json"))))
    return str(json.loads(first.read_text())["version"])


def table() -> Iterator[str]:
    """Yield the rows of the page: of how many prompts each number is as it was."""
    yield "| agent | release | prompts | calls | failed calls | tokens | not in its files |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for release in releases():
        prompts = recorded(release).prompts
        counts = (
            sum(one.same_calls for one in prompts),
            sum(one.same_failures for one in prompts),
            sum(one.same_tokens for one in prompts),
        )
        cells = [
            next(name for key, name in NAMES.items() if release.startswith(key)),
            version_of(release),
            str(len(prompts)),
            *("all" if count == len(prompts) else str(count) for count in counts),
            REASONS.get(release, ""),
        ]
        yield f"| {' | '.join(cells)} |\n"
