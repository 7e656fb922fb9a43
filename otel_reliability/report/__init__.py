"""Readings → people: one view of a recording, and its renderings as JSON, terminal page, Markdown
and JUnit; gates and badges.

`recording` reads files, `build` makes the view (`view`) with the findings, reasons, missing data
and caveats of each agent; the other modules render it.
"""
