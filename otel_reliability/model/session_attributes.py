"""Attributes of the spans that session files of coding agents become: what the GenAI conventions
lack. The reader of session files writes them, its convention reads them.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "otel_reliability.sessions"
"""The instrumentation scope of these spans."""
REJECTED: Final = "session_file.rejected"
"""True on the span of a call that was refused, so never executed."""
PROMPT: Final = "session_file.prompt"
"""The request of the user; its sketch leaves the reader, and no text."""
COMPACTION: Final = "compact"
"""The value of `gen_ai.operation.name` on a compaction of the context."""
LACKS_TOOLS: Final = "session_file.lacks_tools"
"""True on a run whose file may lack tool calls: an empty path is none that was observed."""
LACKS_MODELS: Final = "session_file.lacks_models"
"""True on a run whose file lacks model calls, or tokens of them: the sum of the others is too low.
"""
LACKS_OUTPUT: Final = "session_file.lacks_output"
"""True on a run whose file lacks the output tokens of a model call, and has those of its input."""
TOKENS_BEFORE: Final = "session_file.tokens_before"
TOKENS_AFTER: Final = "session_file.tokens_after"
TRIGGER: Final = "session_file.trigger"
