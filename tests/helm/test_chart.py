"""The Helm chart: rendered by Helm, held to Kubernetes' schemas, with parts that find one another
and settings that are valid.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest
import yaml

from otel_reliability.dashboards import FILES
from tests.docs.pages import FENCE
from tests.real.collector.handle import Collectors
from tests.service.certificates import Authority

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "helm" / "otel-reliability"
SHIPPED: Final = ROOT / "otel_reliability" / "dashboards"
OLDEST = "1.25"
NEWEST = "1.37"
"""Versions of Kubernetes: the oldest that the chart allows, and the newest whose schemas are at
hand.
"""

PREFIX: Final = "OTEL_RELIABILITY_SERVICE_"

Values: TypeAlias = Mapping[str, Any]
Manifest: TypeAlias = Mapping[str, Any]
Render: TypeAlias = Callable[..., Sequence[Manifest]]
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

PUBLIC: Final[Values] = {"access": {"allowPublic": True}}
MONITORED: Final[Values] = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "runbooks": "https://wiki.example/alerts"},
    "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Agents"}},
}
GUARDED: Final[Values] = {
    **MONITORED,
    "access": {"tokenSecret": "tokens", "tlsSecret": "tls"},
    "hashKeySecret": "hash",
    "replicas": 3,
    "config": {"metrics": {"min_runs": 20}, "windows": [{"last": 50}]},
    "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}],
    "state": {"storageClass": "fast"},
    "imagePullSecrets": [{"name": "registry"}],
    "podLabels": {"team": "agents"},
    "podAnnotations": {"note": "x"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
KAFKA: Final[Values] = {
    **MONITORED,
    **PUBLIC,
    "mode": "kafka",
    "hashKeySecret": "hash",
    "config": {"kafka": {"brokers": "kafka:9092"}},
}
CASES: Final[Mapping[str, Values]] = {
    "public": {**PUBLIC, "state": {"enabled": False}},
    "guarded": GUARDED,
    "kafka": KAFKA,
}
EACH: Final = pytest.mark.parametrize("values", CASES.values(), ids=CASES)


@pytest.fixture
def run(helm: Path, tmp_path: Path) -> Run:
    def call(
        verb: Sequence[str], values: Values, version: str = NEWEST
    ) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(values))
        command = [helm, *verb, CHART, "--values", file, "--kube-version", f"{version}.0"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return call


@pytest.fixture
def render(run: Run) -> Render:
    def manifests(values: Values, version: str = NEWEST) -> Sequence[Manifest]:
        done = run(["template", "otel-reliability"], values, version)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    return manifests


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [found for found in manifests if found["kind"] == kind]


@EACH
def test_chart_passes_helms_own_lint(run: Run, values: Values) -> None:
    done = run(["lint", "--strict"], values)

    assert done.returncode == 0, done.stdout


@EACH
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_manifests_satisfy_the_schemas_of_kubernetes(
    render: Render, values: Values, version: str
) -> None:
    for manifest in render(values, version):
        if not manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(dict(manifest), version, strict=True)


@EACH
def test_services_and_monitors_select_what_is_there(render: Render, values: Values) -> None:
    manifests = render(values)
    pods = {
        found["metadata"]["name"]: found["spec"]["template"]
        for found in of_kind(manifests, "StatefulSet")
    }
    headless = {found["spec"]["serviceName"] for found in of_kind(manifests, "StatefulSet")}
    services = of_kind(manifests, "Service")

    for service in services:
        [pod] = [
            one
            for one in pods.values()
            if service["spec"]["selector"].items() <= one["metadata"]["labels"].items()
        ]
        [container] = pod["spec"]["containers"]
        numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert all(numbers[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])
    for monitor in of_kind(manifests, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        scraped = [one for one in services if wanted <= one["metadata"]["labels"].items()]
        assert {one["metadata"]["name"] for one in scraped} == headless
        [endpoint] = monitor["spec"]["endpoints"]
        assert all(
            endpoint["port"] in {port["name"] for port in one["spec"]["ports"]} for one in scraped
        )


@EACH
def test_pods_are_hardened_and_bounded(render: Render, values: Values) -> None:
    for found in of_kind(render(values), "StatefulSet"):
        pod = found["spec"]["template"]["spec"]
        [container] = pod["containers"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        claims = {
            claim["metadata"]["name"] for claim in found["spec"].get("volumeClaimTemplates", ())
        }

        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes | claims


@EACH
def test_containers_start_with_valid_settings(
    render: Render, values: Values, tmp_path: Path
) -> None:
    manifests = render(values)
    [config] = [
        found for found in of_kind(manifests, "ConfigMap") if "config.yaml" in found["data"]
    ]
    file = tmp_path / "config.yaml"
    file.write_text(config["data"]["config.yaml"])
    pair = Authority(tmp_path, "cluster").issue("pod")
    secrets = {
        "TLS_CERTIFICATE": pair.certificate,
        "TLS_KEY": pair.key,
        "TOKEN_FILE": tmp_path / "tokens",
    }
    secrets["TOKEN_FILE"].write_text("secret\n")
    for found in of_kind(manifests, "StatefulSet"):
        [container] = found["spec"]["template"]["spec"]["containers"]
        env = {
            each["name"]: each.get("value", "00112233445566778899aabbccddeeff")
            for each in container["env"]
        }
        env |= {PREFIX + name: str(path) for name, path in secrets.items() if PREFIX + name in env}
        endpoints = {f"{PREFIX}{name}": "0.0.0.0:0" for name in ("GRPC", "HTTP", "UI", "METRICS")}
        command = [
            sys.executable,
            "-m",
            "otel_reliability.cli",
            "serve",
            "--config",
            str(file),
            "--check",
        ]
        done = subprocess.run(
            command,
            env={**os.environ, **endpoints, **env},
            capture_output=True,
            text=True,
            check=False,
        )

        assert container["args"][-2:] == ["--config", "/etc/otel-reliability/config.yaml"]
        assert done.returncode == 0, done.stderr


def test_alerts_and_dashboards_are_those_of_the_package(render: Render) -> None:
    manifests = render({**PUBLIC, **MONITORED})
    [rule] = of_kind(manifests, "PrometheusRule")
    boards = {
        name: json.loads(text)
        for found in of_kind(manifests, "ConfigMap")
        for name, text in found["data"].items()
        if name.endswith(".json")
    }
    shipped = (
        (SHIPPED / "rules.yaml")
        .read_text(encoding="utf-8")
        .replace("alerts.md#", "https://wiki.example/alerts#")
    )

    assert rule["spec"] == yaml.safe_load(shipped)
    assert boards == {
        f"otel-reliability-{name}": json.loads((SHIPPED / name).read_text(encoding="utf-8"))
        for name in FILES
        if name.endswith(".json")
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "access.tokenSecret, access.tlsSecret or access.allowPublic=true"),
        ({**PUBLIC, "replicas": 2}, "hashKeySecret"),
        ({**PUBLIC, "mode": "kafka"}, "hashKeySecret"),
        ({**KAFKA, "config": {}}, "config.kafka.brokers"),
        ({**PUBLIC, "replica": 2}, "replica"),
        ({**PUBLIC, "replicas": 0}, "replicas"),
        ({**PUBLIC, "mode": "cluster"}, "mode"),
        ({**PUBLIC, "state": {"size": "much"}}, "size"),
    ],
)
def test_wrong_values_are_rejected_by_name(run: Run, values: Values, message: str) -> None:
    done = run(["template", "otel-reliability"], values)

    assert done.returncode != 0
    assert message in done.stderr


def test_every_version_is_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    of_package, of_native = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "version"
        ]
        for folder in (".", "native")
    )

    assert (chart["version"], chart["appVersion"], of_native) == (
        of_package,
        of_package,
        of_package,
    )


def test_collector_of_the_operator_is_valid(collector: Collectors) -> None:
    page = (ROOT / "docs" / "guides" / "kubernetes.md").read_text(encoding="utf-8")
    blocks = [
        yaml.safe_load(block) for language, block in FENCE.findall(page) if language == "yaml"
    ]
    [resource] = [block for block in blocks if block.get("kind") == "OpenTelemetryCollector"]
    env = {each["name"]: each.get("value", "secret") for each in resource["spec"]["env"]}

    assert collector.complaint(resource["spec"]["config"], env=env) == ""
