"""Readings → people: a scorecard on the terminal, as JSON, Markdown or JUnit; gates, comparisons, badges.

`recording` reads files, `scorecard` gathers what is known of each agent, `findings` and `gaps` say why and what is missing; the
other modules only write it down.
"""
