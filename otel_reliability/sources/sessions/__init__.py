"""Session files of coding agents → `RawSpan`: one file per agent's format, and what they share.

A prompt and all it caused is a run: a trace of its own with an agent span, its model calls, its
tool calls and its compactions. Sub-agents' calls lie in it too, as they do in the telemetry of the
same agents. Records that a resumed or forked session copied count once.
"""
