"""Names for the groups that `--by` makes of an agent's runs: a prompt without a name has a letter.

The hash of a prompt depends on the key of the process, so it names nothing that a user could find
again. Letters follow the order of first appearance, so they are the same in every invocation on the
same recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from otel_reliability.model.letters import letter
from otel_reliability.model.run import AgentKey, is_hashed
from otel_reliability.report.view import AgentView


def agent_without_group(key: AgentKey) -> AgentKey:
    """Return the key of the agent that a group belongs to."""
    return key._replace(extra=key.extra[:-1])


def lettered(views: Iterable[AgentView]) -> list[AgentView]:
    """Return the groups with letters in the place of hashes, sorted by their keys."""
    given: dict[AgentKey, int] = {}
    found: list[AgentView] = []
    for view in sorted(views, key=lambda view: (view.start, view.first_run)):
        kind, value = view.key.extra[-1]
        if is_hashed(kind, value):
            agent = agent_without_group(view.key)
            number = given.get(agent, 0)
            given[agent] = number + 1
            found.append(replace(view, key=_named(view.key, letter(number))))
        else:
            found.append(view)
    return sorted(found, key=lambda view: view.key)


def _named(key: AgentKey, name: str) -> AgentKey:
    kind = key.extra[-1][0]
    return key._replace(extra=(*key.extra[:-1], (kind, name)))


def groups_of_agents(views: Sequence[AgentView]) -> list[list[AgentView]]:
    """Return the groups of each agent, in the order of their first runs."""
    found: dict[AgentKey, list[AgentView]] = {}
    for view in sorted(views, key=lambda view: (view.start, view.first_run)):
        found.setdefault(agent_without_group(view.key), []).append(view)
    return list(found.values())
