"""Coding agents: which calls read files, change files or run tests, and what a prompt's calls add
up to.

A file tool says it by its name, a shell by its command. So the tables below are all that is known
of coding agents here: an agent without a call that reads or changes a file is none, and has no
`CodingTotals`. Commands are classified where spans are read (`conventions.hashing`); only the
flags of their activities go further.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from otel_reliability.model.run import Run, ToolCall
from otel_reliability.model.tools import (
    HARMLESS,
    MAX_COMMAND,
    NEXT_COMMAND,
    READS_ONLY,
    SHELL_WORDS,
    has_word,
    words,
)

EFFECT_SIZE: Final = 8
"""Bytes of the hash of an effect (`conventions.hashing`)."""
READS: Final = 1
"""It reads a file, or searches in files."""
EDITS: Final = 2
"""It creates or changes a file."""
TESTS: Final = 4
"""It runs tests."""

# --- The tables -----------------------------------------------------------------------------------

FILE_TOOLS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        (
            *("read", "read_file", "read_files", "read_many_files", "read_multiple_files"),
            *("read_text_file", "read_media_file", "view", "view_file", "notebook_read"),
            *("grep", "grep_search", "search_file_content", "search_files", "file_search"),
            *("codebase_search", "glob", "list_directory", "list_dir", "list_files", "ls"),
            *("open", "open_file", "goto", "search_dir", "search_file", "find_file"),
        ),
        READS,
    ),
    **dict.fromkeys(
        (
            *("edit", "edit_file", "edit_files", "multi_edit", "multi_edit_file", "notebook_edit"),
            *("write", "write_file", "write_to_file", "create", "create_file", "insert"),
            *("replace", "replace_in_file", "search_replace", "str_replace", "apply_patch"),
            *("apply_diff", "patch", "insert_edit_into_file", "replace_string_in_file"),
            *("str_replace_editor", "str_replace_based_edit_tool"),
        ),
        EDITS,
    ),
}
"""Tools of coding agents by the words of their names (`read_file` stands for `ReadFile` and
`mcp__fs__read_file` too).
"""
AMBIGUOUS: Final = frozenset({"read", "view", "open", "goto"})
"""Names that agents give to tools for mails or pages too: they show no coding agent by themselves.
"""
EDITORS: Final = frozenset({"editor", "tool"})
"""Last words of the names of tools whose argument `command` says whether they read or change."""
EDITOR_COMMANDS: Final[Mapping[str, int]] = {
    "view": READS,
    **dict.fromkeys(("create", "insert", "str_replace", "undo_edit"), EDITS),
}

READING_PROGRAMS: Final = frozenset(
    {"cat", "head", "tail", "less", "more", "bat", "nl", "sed", "awk", "cut", "sort", "uniq", "wc"}
    | {"grep", "egrep", "fgrep", "rg", "ag", "ack", "ls", "tree", "find", "fd", "file", "stat"}
)
"""Programs that read files or search in them; of some only with the arguments below."""
READING_GIT: Final = frozenset({"show", "diff", "log", "blame", "grep", "ls-files"})
"""Commands of git that read files or their history."""
QUIET_PROGRAMS: Final = frozenset({"cd", "pwd", "echo", "printf", "true", "set", "export", "which"})
"""Programs that neither read, change nor test: the rest of the command decides."""
EDITING_PROGRAMS: Final = frozenset({"apply_patch", "applypatch", "patch", "tee"})
WRITING_PROGRAMS: Final = frozenset({"cat", "echo", "printf"})
"""Programs that change a file where their output goes to one."""
IN_PLACE: Final = frozenset({"sed", "perl"})
"""Programs that change files with an argument `-i`."""

TEST_RUNNERS: Final = frozenset(
    {"pytest", "py.test", "tox", "nox", "unittest", "nose2", "jest", "vitest", "mocha", "ava"}
    | {"karma", "cypress", "rspec", "minitest", "phpunit", "pest", "ctest", "gotestsum", "nextest"}
    | {"behave", "robot", "bats", "prove", "busted"}
)
"""Programs, and modules of Python, that run tests."""
TEST_COMMANDS: Final[Mapping[str, frozenset[str]]] = dict.fromkeys(
    (
        *("npm", "pnpm", "yarn", "bun", "deno", "go", "cargo", "dotnet", "swift", "flutter"),
        *("dart", "mix", "rake", "rails", "bazel", "buck", "buck2", "sbt", "lein", "hatch"),
        *("composer", "playwright", "zig", "stack", "cabal", "dune", "meson", "forge", "nx"),
    ),
    frozenset({"test", "tests", "nextest", "t"}),
)
"""Programs whose first argument, or the one after `run`, says that tests run (`test:unit`)."""
TEST_TARGETS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("make", "just", "task", "ninja"), frozenset({"test", "tests", "check"})),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew"), frozenset({"test", "verify", "check"})),
}
"""Programs of which any argument may name a target that runs tests (`test-unit`, `:app:test`)."""
WRAPPERS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("sudo", "time", "nice", "nohup", "exec", "command", "env", "xvfb-run"), 0),
    **dict.fromkeys(("npx", "bunx", "pnpx", "uvx", "pipx", "bundle", "coverage"), 0),
    **dict.fromkeys(("uv", "poetry", "pdm", "pipenv", "rye", "conda", "pnpm", "yarn"), 0),
    "timeout": 1,
}
"""Programs that run the program that follows them, and how many arguments of their own come
first.
"""
_WRAPPED_BY: Final = frozenset({"run", "exec", "x", "--"})
INTERPRETERS: Final = frozenset(
    {"python", "python3", "node", "ruby", "perl", "php", "sh", "bash", "zsh", "deno", "bun", "tsx"}
)
"""Programs that run the file that their arguments name."""
TEST_WORDS: Final = frozenset({"test", "tests", "spec", "specs"})
"""Words of the path of a program that runs tests (`tests/test_core.py`, `./run_tests.sh`)."""

# --- One call -------------------------------------------------------------------------------------

_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)\n(?:.*?\n)?\s*\2\b", re.DOTALL)
_SETTING: Final = re.compile(r"\w+=\S*")
_NAME_WORD: Final = re.compile(r"[a-z]+")
_TARGET: Final = re.compile(r"[:-]")


@functools.lru_cache(maxsize=4096)
def of_tool(name: str) -> int:
    """Return the activities that a tool's name says.

    >>> of_tool("Read") == of_tool("mcp__fs__read_file") == READS, of_tool("MultiEdit") == EDITS
    (True, True)
    >>> of_tool("Bash"), of_tool("get_order")
    (0, 0)
    """
    return FILE_TOOLS.get("_".join(words(name)), 0)


@functools.lru_cache(maxsize=4096)
def is_of_coding(name: str) -> bool:
    """Return whether a tool's name shows a coding agent.

    >>> is_of_coding("Grep"), is_of_coding("read"), is_of_coding("Bash")
    (True, False, False)
    """
    return of_tool(name) != 0 and "_".join(words(name)) not in AMBIGUOUS


@functools.lru_cache(maxsize=4096)
def has_command(name: str) -> bool:
    """Return whether an argument of this tool holds a command that says what a call does."""
    return has_word(name, SHELL_WORDS) or (of_tool(name) == EDITS and words(name)[-1] in EDITORS)


def of_command(command: str) -> int:
    """Return the activities of a shell's or an editor's command.

    A command reads where each of its parts only reads; it edits, or tests, where one of them does.

    >>> [of_command(each) for each in ("cat a.py | head", "cd src && rg -n x", "sed -i s/a/b/ c")]
    [1, 1, 2]
    >>> [
    ...     of_command(each)
    ...     for each in ("uv run pytest -q", "python3 tests/test_core.py", "npm run test:unit")
    ... ]
    [4, 4, 4]
    >>> of_command("git push"), of_command("view"), of_command("make && make test")
    (0, 1, 4)
    """
    if command in EDITOR_COMMANDS:
        return EDITOR_COMMANDS[command]
    if len(command) > MAX_COMMAND:
        return 0
    shown = HARMLESS.sub("", _HEREDOC.sub(r"\3\n", command))
    found = [_of_part(part.split()) for part in NEXT_COMMAND.split(shown) if part.strip()]
    decided = [one for one in found if one is not None]
    total = functools.reduce(int.__or__, decided, 0)
    return READS if total == READS and all(decided) else total & ~READS


def _of_part(parts: Sequence[str]) -> int | None:
    """Return the activities of one program with its arguments; None where it decides nothing."""
    parts = _without_wrappers(parts)
    if not parts:
        return None
    program = PurePosixPath(parts[0].strip("'\"")).name
    arguments = [part.strip("'\"") for part in parts[1:]]
    writes = any(part.startswith(">") or ">" in part[:2] for part in parts[1:])
    if _runs_tests(program, parts[0], arguments):
        return TESTS
    if program in EDITING_PROGRAMS or (writes and program in WRITING_PROGRAMS):
        return EDITS
    if program in IN_PLACE and any(_is_in_place(one) for one in arguments):
        return EDITS
    if program == "git":
        command = next((one for one in arguments if not one.startswith("-")), "")
        return EDITS if command == "apply" else READS if command in READING_GIT else 0
    if program in QUIET_PROGRAMS:
        return None
    return READS if program in READING_PROGRAMS and not writes else 0


def _without_wrappers(parts: Sequence[str]) -> Sequence[str]:
    """Return a command without settings of variables and the programs that only run another."""
    left = list(parts)
    while left:
        program = PurePosixPath(left[0]).name
        if _SETTING.fullmatch(left[0]):
            del left[0]
        elif program in WRAPPERS and not _has_test_command(program, left[1:]):
            del left[: 1 + WRAPPERS[program]]
            while left and (left[0].startswith("-") or left[0] in _WRAPPED_BY):
                del left[0]
        else:
            break
    return left


def _runs_tests(program: str, path: str, arguments: Sequence[str]) -> bool:
    if program in TEST_RUNNERS or _has_test_command(program, arguments):
        return True
    if program.rstrip("0123456789.") in INTERPRETERS or program in INTERPRETERS:
        if "--test" in arguments:
            return True
        at = next((n for n, one in enumerate(arguments) if not one.startswith("-")), None)
        if at is None:
            return False
        if at and arguments[at - 1] == "-m":
            return arguments[at] in TEST_RUNNERS
        return not {"-c", "-e", "-lc"} & {*arguments[:at]} and _is_test_file(arguments[at])
    return "/" in path and _is_test_file(path)


def _has_test_command(program: str, arguments: Sequence[str]) -> bool:
    named = [one for one in arguments if not one.startswith("-")]
    if program in TEST_TARGETS:
        wanted = TEST_TARGETS[program]
        return any(not wanted.isdisjoint(_TARGET.split(one)) for one in named)
    first = named[1:2] if named[:1] == ["run"] else named[:1]
    return any(one.partition(":")[0] in TEST_COMMANDS.get(program, ()) for one in first)


def _is_test_file(path: str) -> bool:
    return not TEST_WORDS.isdisjoint(_NAME_WORD.findall(path.lower()))


def _is_in_place(argument: str) -> bool:
    is_short = argument.startswith("-") and not argument.startswith("--")
    return argument.startswith("--in-place") or (is_short and "i" in argument[:4])


def marked(effect: bytes, found: int) -> bytes:
    r"""Return the hash of what a call changes, followed by the activities of its command.

    >>> marked(b"12345678", TESTS)
    b'12345678\x04'
    """
    return effect + bytes((found,)) if found else effect


def activities(call: ToolCall) -> int:
    """Return the activities of a call: those of its command (`marked`), else those of its tool."""
    effect = call.effect
    if effect is not None and has_command(call.name):
        if effect == READS_ONLY:
            return READS
        if len(effect) > EFFECT_SIZE:
            return effect[EFFECT_SIZE]
    return of_tool(call.name)


def is_hidden(call: ToolCall) -> bool:
    """Return whether a call ran a command that the telemetry does not hold."""
    return call.effect is None and has_word(call.name, SHELL_WORDS)


# --- The calls of a prompt, or of several ---------------------------------------------------------


class CodingTotals(NamedTuple):
    """Work of the prompts of a coding agent: sums over prompts, of which one at least read or
    changed a file.

    `editing_prompts` are those with an edit, and `reads_before_edit` the reads before the first one
    of each. `tested_prompts` are those, of `testable_prompts`, in which tests ran after the last
    edit that succeeded; a prompt is testable where it has such an edit and all commands are known.
    """

    prompts: int
    edits: int = 0
    failed_edits: int = 0
    editing_prompts: int = 0
    reads_before_edit: int = 0
    testable_prompts: int = 0
    tested_prompts: int = 0

    @staticmethod
    def joined(totals: Iterable[CodingTotals | None]) -> CodingTotals | None:
        """Return the sums over those that are known; None without any.

        >>> CodingTotals.joined([CodingTotals(1, edits=2), None, CodingTotals(1, edits=3)])[:2]
        (2, 5)
        """
        known = [one for one in totals if one is not None]
        return CodingTotals(*map(sum, zip(*known, strict=True))) if known else None


def coding_totals(run: Run) -> CodingTotals | None:
    """Return the totals of one prompt; None where no call of it shows a coding agent."""
    calls = run.tool_calls
    if not calls:
        return None
    found = [activities(call) for call in calls]
    if not any(
        one & EDITS or is_of_coding(call.name) for one, call in zip(found, calls, strict=True)
    ):
        return None
    edits = [at for at, one in enumerate(found) if one & EDITS]
    done = [at for at in edits if calls[at].ok]
    is_tested = bool(done) and any(one & TESTS for one in found[done[-1] :])
    hides_commands = any(is_hidden(call) for call in calls)
    return CodingTotals(
        prompts=1,
        edits=len(edits),
        failed_edits=len(edits) - len(done),
        editing_prompts=1 if edits else 0,
        reads_before_edit=sum(one & READS for one in found[: edits[0]]) if edits else 0,
        testable_prompts=1 if done and not hides_commands else 0,
        tested_prompts=1 if is_tested and not hides_commands else 0,
    )
