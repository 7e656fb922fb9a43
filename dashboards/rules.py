"""The alerts as Prometheus' rules, as Grafana's provisioning, and as the runbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from dashboards.alerts import AGENT, ALERTS, ENOUGH, RECIPES, Alert
from dashboards.board import UID
from dashboards.objectives import RECORDED, by_record

RUNBOOK: Final = "alerts.md"
SOURCE_UID: Final = "prometheus"
FOLDER: Final = "Agents"
BEHIND: Final = "# Made from the folder `dashboards` by `make docs`.\n"


def prometheus_rules() -> str:
    """The file that stands under `rule_files` of Prometheus."""
    recorded = [
        {"record": name, "expr": readable(expression)} for name, expression in RECORDED.items()
    ]
    groups: list[dict[str, Any]] = [{"name": "otel-reliability-objectives", "rules": recorded}]
    groups += [
        {
            "name": f"otel-reliability-{group}",
            "rules": [_rule(alert) for alert in ALERTS if _group(alert) == group],
        }
        for group in ("agents", "self")
    ]
    return _yaml({"groups": groups})


def readable(expression: str) -> str:
    """A long question, broken where its conditions begin.

    >>> print(readable("a > 1 and on (b) (c unless d)"))
    a > 1
    and on (b) (c
    unless d)
    """
    for word in ("and on (", "unless "):
        expression = expression.replace(f" {word}", f"\n{word}")
    return expression


def _group(alert: Alert) -> str:
    return "self" if alert.board == "self" else "agents"


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": f"({readable(by_record(alert.value))}\n) > {alert.above:g}",
        "for": alert.lasts,
        "keep_firing_for": alert.keeps,
        "labels": {"severity": alert.severity},
        "annotations": _annotations(alert, ".Value") | {"dashboard": _dashboard(alert)},
    }


def _annotations(alert: Alert, value: str) -> dict[str, str]:
    shown = f"{{{{ {value} | {alert.unit} }}}}" if alert.unit else f"{{{{ {value} }}}}"
    return {
        "summary": alert.summary,
        "description": alert.description.replace("{{ .Value }}", shown),
        "runbook_url": f"{RUNBOOK}#{alert.name.lower()}",
    }


def _dashboard(alert: Alert) -> str:
    if alert.board == "self":
        return f"/d/{UID}fleet"
    chosen = "&".join(
        f"var-{variable}={{{{ .Labels.{label} | urlquery }}}}"
        for variable, label in (
            ("namespace", "service_namespace"),
            ("environment", "deployment_environment_name"),
            ("service", "service_name"),
            ("agent", "gen_ai_agent_name"),
        )
    )
    return f"/d/{UID}{alert.board}?{chosen}"


def grafana_alerts() -> str:
    """The file that stands in `provisioning/alerting` of Grafana."""
    rules = [_provisioned(alert) for alert in ALERTS]
    group = {
        "orgId": 1,
        "name": "otel-reliability",
        "folder": FOLDER,
        "interval": "1m",
        "rules": rules,
    }
    return _yaml({"apiVersion": 1, "groups": [group]})


def _provisioned(alert: Alert) -> dict[str, Any]:
    return {
        "uid": f"otel-reliability-{alert.name.removeprefix('Reliability').removeprefix('Agent').lower()}",
        "title": alert.name,
        "condition": "B",
        "data": [
            _query(
                "A", SOURCE_UID, {"expr": readable(alert.value), "instant": True, "range": False}
            ),
            _query("B", "__expr__", _threshold(alert.above)),
        ],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.lasts,
        "labels": {"severity": alert.severity},
        "annotations": _annotations(alert, ".Values.A.Value") | {"dashboard": _dashboard(alert)},
        "isPaused": False,
    }


def _query(ref: str, source: str, model: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "refId": ref,
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": source,
        "model": {"refId": ref, **model},
    }


def _threshold(above: float) -> dict[str, Any]:
    condition = {"evaluator": {"type": "gt", "params": [above]}}
    return {"type": "threshold", "expression": "A", "conditions": [condition]}


def dashboard_provider() -> str:
    """The file that stands in `provisioning/dashboards` of Grafana."""
    provider = {
        "name": "otel-reliability",
        "folder": FOLDER,
        "type": "file",
        "allowUiUpdates": True,
        "options": {"path": "/etc/grafana/dashboards"},
    }
    return _yaml({"apiVersion": 1, "providers": [provider]})


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and says nothing by reference."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """What has several lines is written in several lines."""
    style = "|" if "\n" in text else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _yaml(content: Mapping[str, Any]) -> str:
    return BEHIND + yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000
    )


ABOUT: Final = f"""# Alerts

<!-- Made from dashboards/alerts.py by `make docs`. -->

What each alert means, where to look first, what to do, and how to silence it. `otel-reliability dashboards DIR` writes them as
Prometheus rules and as Grafana alerts: take one of the two. With `ui.url` set (in the settings file that `--config` names, or as
`OTEL_RELIABILITY_UI_URL`), they link to the agent's page of the UI, and to this page there (`/alerts`).

The rules for Prometheus have `keep_firing_for`, which Prometheus has since 2.42; the file for Grafana does without.
Alerts on the numbers of a window need {ENOUGH} runs in it and a recent one; *AgentRunExceedsBound* concerns one open run; alerts on the service need
enough spans, requests or exports. To silence one, make a silence in Alertmanager (or in Grafana, under
*Alerting*) with `alertname` and, for an agent, `gen_ai_agent_name`. To raise a limit for good, change it in the rule file: it
is the number behind the last `>`.

| alert | severity | when | for |
|---|---|---|---|
"""


def runbook() -> str:
    """The page: a table of all, then a section each."""
    rows = "".join(
        (
            f"| [{one.name}](#{one.name.lower()}) | {one.severity} | {_plain(one.summary)} | "
            f"{one.lasts} |\n"
        )
        for one in ALERTS
    )
    recipes = "".join(
        f"\n### {one.name}\n\n{one.about}\n\n```promql\n{one.value}\n```\n" for one in RECIPES
    )
    asked = "\n## Recipes\n\nQuestions for your own panels and rules.\n"
    return ABOUT + rows + "".join(map(_section, ALERTS)) + asked + recipes


def _section(alert: Alert) -> str:
    look = "".join(f"{at}. {what}\n" for at, what in enumerate(alert.look, 1))
    do = "".join(f"- {what}\n" for what in alert.do)
    named = "" if alert.board == "self" else ', `gen_ai_agent_name="…"`'
    return (
        f"\n## {alert.name}\n\n{alert.means}\n\n"
        f"Fires when this is above {alert.above:g}, for "
        f"{alert.lasts}:\n\n```promql\n{readable(by_record(alert.value))}\n```\n\n"
        f"**Look first**\n\n{look}\n**Do**\n\n{do}\n"
        f'**Silence**: `alertname="{alert.name}"`{named}.\n'
    )


def _plain(template: str) -> str:
    """A summary without its placeholders.

    >>> _plain(f"The tier of {AGENT} fell")
    'The tier of an agent fell'
    """
    named = template.replace(AGENT, "an agent")
    return named.replace("Version {{ .Labels.service_version }}", "A version").replace(
        ": {{ .Labels.limit }}", ""
    )
