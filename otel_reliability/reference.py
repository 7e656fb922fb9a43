"""`change.reference`: a recording → the observations of its agents, which change is measured
against.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from otel_reliability.change.recording import Observations
from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.model.observation import Observation
from otel_reliability.model.run import AgentKey
from otel_reliability.recording import Recording

FIELD = "change.reference"


class ReferenceByName(Mapping[AgentKey, Sequence[Observation]]):
    """The observations of a recording's agents, also for keys that are not in it: a recording of
    staging, say, is for production too.

    >>> staged, other = (
    ...     AgentKey("", "shop", "staging", "desk"),
    ...     AgentKey("", "shop", "prod", "desk"),
    ... )
    >>> ReferenceByName({staged: []}).matching(other) == staged, ReferenceByName({}).matching(other)
    (True, None)
    """

    def __init__(self, observations: Mapping[AgentKey, Sequence[Observation]]) -> None:
        self._observations = observations
        self._alone = by_name(observations)

    def matching(self, key: AgentKey) -> AgentKey | None:
        """Return the agent of the recording that this agent is compared with, or None."""
        return key if key in self._observations else self._alone.get(key.agent)

    def is_ambiguous(self, key: AgentKey) -> bool:
        """Return whether several agents of the recording have that name, and none of them its
        service and environment.
        """
        return self.matching(key) is None and any(
            known.agent == key.agent for known in self._observations
        )

    def __getitem__(self, key: AgentKey) -> Sequence[Observation]:
        found = self.matching(key)
        if found is None:
            raise KeyError(key)
        return self._observations[found]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, AgentKey) and self.matching(key) is not None

    def __iter__(self) -> Iterator[AgentKey]:
        return iter(self._observations)

    def __len__(self) -> int:
        return len(self._observations)


def by_name(keys: Collection[AgentKey]) -> dict[str, AgentKey]:
    """Return the agents whose name no other has, by name."""
    names = Counter(key.agent for key in keys)
    return {key.agent: key for key in keys if names[key.agent] == 1}


def pinned_by(settings: Settings) -> Mapping[AgentKey, Sequence[Observation]]:
    """The observations of the recording that the settings name, by agent; none where they name
    none.

    Agents are matched by service, environment and name; one that is not in the recording by its
    name alone, where only one agent there has it. Any other learns a reference of its own. Raises
    `ConfigurationError` where the file cannot be opened, or holds no run.

    >>> pinned_by(Settings())
    {}
    """
    path = settings.change.reference
    if path is None:
        return {}
    try:
        found = _read(path, settings)
    except SourceError as error:
        raise ConfigurationError(
            FIELD, path, f"a recording that can be read ({error})", "give its path"
        ) from error
    if not found:
        allowed = "a recording of agent runs"
        raise ConfigurationError(
            FIELD,
            path,
            allowed,
            "give OTLP-JSON lines, as the Collector's file exporter writes them",
        )
    return ReferenceByName(found)


def _read(path: str, settings: Settings) -> dict[AgentKey, list[Observation]]:
    observations = Observations()
    undetected = replace(settings, change=replace(settings.change, enabled=False))
    recording = Recording(undetected, final=observations.add)
    recording.read_all([path])
    recording.close()
    return dict(observations)
