from __future__ import annotations

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry.attributes import of_agent


def test_the_whole_key_is_told() -> None:
    """Namespace, service, environment, agent, and whatever `agent.key` adds."""
    key = AgentKey("retail", "shop", "prod", "support", (("service.version", "2"),))

    assert of_agent(key) == {
        "service.namespace": "retail",
        "service.name": "shop",
        "deployment.environment.name": "prod",
        "gen_ai.agent.name": "support",
        "service.version": "2",
    }


def test_absent_parts_make_no_empty_labels() -> None:
    """Prometheus shows an empty label like an absent one, but two spellings of one series confuse everybody else."""
    assert of_agent(AgentKey("", "", "", "support", (("service.version", ""),))) == {"gen_ai.agent.name": "support"}
