"""The attributes of data points: whose numbers they are."""

from __future__ import annotations

from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names


def of_agent(key: AgentKey) -> dict[str, str]:
    """The attributes of one agent's series. Absent parts are left out, so that no series has an empty label.

    >>> of_agent(AgentKey("", "shop", "prod", "support", (("service.version", "2"),)))
    {'service.name': 'shop', 'deployment.environment.name': 'prod', 'gen_ai.agent.name': 'support', 'service.version': '2'}
    """
    found = {
        names.SERVICE_NAMESPACE: key.service_namespace,
        names.SERVICE_NAME: key.service_name,
        names.ENVIRONMENT: key.environment,
        names.AGENT_NAME: key.agent,
        **dict(key.extra),
    }
    return {name: value for name, value in found.items() if value}
