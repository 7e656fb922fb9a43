"""Every alert fires when it should and not when it should not, says what to do, and is told alike
to Prometheus and Grafana.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import alerting, expr

from dashboards.alerts import ALERTS, RECIPES, Alert
from dashboards.objectives import RECORDED, by_record
from otel_reliability.dashboards import FILES, Installation, adapted
from tests.dashboards.alert_cases import AT, CASES, Case, objective, outcomes
from tests.dashboards.asking import ROOT, SHIPPED, alerts_in, board, rules_in
from tests.real.prometheus.handle import Promtool


def told() -> list[dict[str, Any]]:
    return alerts_in((SHIPPED / "rules.yaml").read_text(encoding="utf-8"))


def all_rules() -> list[dict[str, Any]]:
    return rules_in((SHIPPED / "rules.yaml").read_text(encoding="utf-8"))


def recorded_for(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """The recording rules that a rule asks."""
    return [one for one in all_rules() if "record" in one and one["record"] in rule["expr"]]


def provisioned() -> list[dict[str, Any]]:
    return rules_in((SHIPPED / "alerting.yaml").read_text(encoding="utf-8"))


def unit_test(alert: str, case: Case) -> dict[str, Any]:
    labels = "".join(f',{label}="{value}"' for label, value in case.labels.items())
    return {
        "interval": f"{case.every}m",
        "name": f"{alert}: {case.why}",
        "input_series": [
            {"series": name, "values": values} for name, values in case.series.items()
        ],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"{labels}}})',
                "eval_time": f"{case.minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if case.fires else [],
            }
        ],
    }


def tried(promtool: Promtool, folder: Path, alert: str, cases: Sequence[Case]) -> str:
    path = folder / "unit-tests.yaml"
    alone = folder / "rules.yaml"
    rule = next(one for one in told() if one["alert"] == alert)  # the others only take time
    rules = [*recorded_for(rule), rule]
    alone.write_text(yaml.safe_dump({"groups": [{"name": "alone", "rules": rules}]}))
    content = {
        "rule_files": [str(alone)],
        "evaluation_interval": f"{max(case.every for case in cases)}m",
        "tests": [unit_test(alert, case) for case in cases],
    }
    path.write_text(yaml.safe_dump(content))
    done = promtool("test", "rules", path)
    return "" if done.returncode == 0 else done.stderr + done.stdout


@pytest.mark.real
def test_promtool_accepts_the_rules(promtool: Promtool) -> None:
    for path in (SHIPPED / "rules.yaml", ROOT / "docker" / FILES["rules.yaml"]):
        done = promtool("check", "rules", path)
        assert done.returncode == 0, done.stderr
        assert f"{len(ALERTS) + len(RECORDED)} rules found" in done.stdout


@pytest.mark.real
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_when_it_should_and_only_then(
    alert: Alert, promtool: Promtool, tmp_path: Path
) -> None:
    assert tried(promtool, tmp_path, alert.name, CASES[alert.name]) == ""


@pytest.mark.real
def test_promtool_notices_a_wrong_case(promtool: Promtool, tmp_path: Path) -> None:
    alert, (right, *_) = next(iter(CASES.items()))

    assert "FAILED" in tried(promtool, tmp_path, alert, [right._replace(fires=False)])


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_is_tried_both_ways(alert: Alert) -> None:
    assert {case.fires for case in CASES[alert.name]} == {True, False}


def test_each_rule_has_its_runbook_and_each_runbook_its_rule() -> None:
    page = (ROOT / "docs" / "guides" / "alerts.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\w+)$", page, re.MULTILINE)

    assert sections.pop() == "Recipes"
    assert sections == [rule["alert"] for rule in told()]
    assert sections == [rule["title"] for rule in provisioned()]
    for rules in (told(), provisioned()):
        assert [rule["annotations"]["runbook_url"] for rule in rules] == [
            f"alerts.md#{name.lower()}" for name in sections
        ]


def test_a_runbook_says_what_it_means_where_to_look_what_to_do_and_how_to_silence_it() -> None:
    page = (ROOT / "docs" / "guides" / "alerts.md").read_text(encoding="utf-8")

    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:-1]:
        assert re.search(r"\A\w+\n\n\w[^\n]{60,}\n", section), section
        assert all(
            heading in section
            for heading in ("**Look first**", "**Do**", "**Silence**", "```promql")
        ), section


def test_grafana_is_told_the_same() -> None:
    for rule, theirs in zip(told(), provisioned(), strict=True):
        asked, judged = theirs["data"]
        (condition,) = judged["model"]["conditions"]
        limit = condition["evaluator"]["params"][0]
        expected = by_record(" ".join(asked["model"]["expr"].split()))
        assert " ".join(rule["expr"].split()) == f"({expected} ) > {limit:g}"
        assert condition["evaluator"]["type"] == "gt"
        assert (theirs["condition"], judged["datasourceUid"], judged["model"]["expression"]) == (
            "B",
            "__expr__",
            "A",
        )
        assert (rule["for"], rule["labels"]) == (theirs["for"], theirs["labels"])
        assert theirs["annotations"]["summary"] == rule["annotations"]["summary"]


RECIPE_SERIES = {
    f"agent_reliability_score{{{AT}}}": "80x8640 70x2000",
    f"agent_reliability_score_coverage{{{AT}}}": "100x11000",
    f'agent_reliability_retries_total{{{AT},gen_ai_tool_name="pay"}}': "0+1x11000",
    f'agent_reliability_tool_calls_total{{{AT},gen_ai_tool_name="pay"}}': "0+4x11000",
    f"agent_reliability_retry_cost_per_run{{{AT}}}": "0.5x11000",
    f'agent_reliability_runs_total{{{AT},outcome="success"}}': "0+1x11000",
    f"agent_reliability_last_run_timestamp_seconds{{{AT}}}": "1x11000",
}
"""A week in which an agent lost ten points, retried one of four calls, and had no run that counts
since long ago.
"""


@pytest.mark.real
def test_recipes_answer_what_they_say(promtool: Promtool, tmp_path: Path) -> None:
    minute = 10_600
    answers = [10, 0.25, 720, minute * 60 - 1]
    expected = [
        {
            "expr": f"round(sum({recipe.value}), 0.01)",
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": answer}],
        }
        for recipe, answer in zip(RECIPES, answers, strict=True)
    ]
    series = [{"series": name, "values": values} for name, values in RECIPE_SERIES.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": expected}
    path = tmp_path / "tests.yaml"
    path.write_text(
        yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]})
    )
    done = promtool("test", "rules", path)

    assert done.returncode == 0, done.stderr + done.stdout


def test_the_budget_of_each_period_is_recorded() -> None:
    week, month = 7 * 86_400, 30 * 86_400
    for periods, expected in [((), {"30d"}), ((week, month, week), {"7d", "30d"})]:
        files = dict(adapted(Installation(periods=periods)))
        rules = rules_in(files[FILES["rules.yaml"]])
        name = "agent:reliability_error_budget_left:increase"
        found = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}
        budgets = {key.removeprefix(name): expr for key, expr in found.items() if name in key}

        assert set(budgets) == expected
        assert all(f"[{over}]" in expr for over, expr in budgets.items())
        seconds = {"7d": week, "30d": month}
        assert all(f"== {seconds[over]})" in expr for over, expr in budgets.items())


@pytest.mark.real
def test_the_budget_left_is_what_the_period_has_not_used(
    promtool: Promtool, tmp_path: Path
) -> None:
    """Of 1,000 runs 20 failed and 50 may: 60 % are left."""
    budget = next(rule for rule in all_rules() if rule.get("record", "").endswith("increase30d"))
    series = {**objective(0.95), **outcomes("0+98x10 980x400", "0+2x10 20x400")}
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round(sum({budget['expr']}), 0.01)",
                "eval_time": "60m",
                "exp_samples": [{"labels": "{}", "value": 0.6}],
            }
        ],
    }
    path = tmp_path / "tests.yaml"
    content = {"rule_files": [], "evaluation_interval": "1m", "tests": [test]}
    path.write_text(yaml.safe_dump(content))
    done = promtool("test", "rules", path)

    assert done.returncode == 0, done.stderr + done.stdout


def test_alerts_lead_to_the_ui_once_its_address_is_known() -> None:
    files = {
        path.name: text for path, text in adapted(Installation(ui="https://reliability.example/"))
    }
    rules = alerts_in(files["otel-reliability.yaml"])

    assert {rule["annotations"]["dashboard"] for rule in rules} == {
        "https://reliability.example/",
        (
            "https://reliability.example/agents/{{ .Labels.service_name }}/{{ "
            ".Labels.gen_ai_agent_name }}"
        ),
    }
    assert all(
        rule["annotations"]["runbook_url"].startswith("https://reliability.example/alerts#")
        for rule in rules
    )


def test_grafanas_own_model_knows_every_word_of_them() -> None:
    for theirs in provisioned():
        read = json.loads(JSONEncoder().encode(alerting.Rule.from_json(theirs)))
        judged = theirs["data"][1]["model"]
        assert read | theirs == read
        assert json.loads(JSONEncoder().encode(expr.TypeThreshold.from_json(judged))) == judged


def test_grafana_would_not_take_a_word_for_a_variable() -> None:
    """No dollar stands in the file: Grafana puts the environment's variables there when it reads
    it.
    """
    assert "$" not in (SHIPPED / "alerting.yaml").read_text(encoding="utf-8")


def test_uids_are_short_and_differ() -> None:
    uids = [rule["uid"] for rule in provisioned()]

    assert len(set(uids)) == len(uids)
    assert all(re.fullmatch(r"[\w-]{1,40}", uid) for uid in uids)


def test_alerts_lead_to_a_dashboard_that_is_there() -> None:
    known = {board(name)["uid"] for name in ("fleet", "agent")}

    for rule in (*told(), *provisioned()):
        path, _, chosen = rule["annotations"]["dashboard"].removeprefix("/d/").partition("?")
        assert path in known
        assert ("var-agent={{ .Labels.gen_ai_agent_name | urlquery }}" in chosen) == (
            path == "otel-reliability-agent"
        )


def test_an_agent_in_an_alert_is_told_from_others_of_its_name() -> None:
    for rule in (*told(), *provisioned()):
        if rule["annotations"]["dashboard"].startswith("/d/otel-reliability-agent"):
            assert ".Labels.deployment_environment_name" in rule["annotations"]["summary"]
            assert ".Labels.service_namespace" in rule["annotations"]["summary"]


def test_a_gap_between_scrapes_resets_no_alert() -> None:
    assert all(rule["keep_firing_for"] == "10m" for rule in told())
