"""The compose files: as their schema wants them, pinned, bounded, hardened, and made of files that
exist and work.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from otel_reliability.cli.demo import command as demo
from otel_reliability.demo.replay import SERVICE, Endpoint, Replay
from tests.cli.command_line import call
from tests.demo.fleet import A_ROUND
from tests.docker.image import PROJECT
from tests.real.collector.handle import Collectors
from tests.real.prometheus.handle import Promtool
from tests.real.waiting import until
from tests.service.running import serving

DOCKER = PROJECT / "docker"
FILES = ("compose.yaml", "compose.quick.yaml")
ALL_FILES = (*FILES, "compose.kafka.yaml")
OURS = ("otel-reliability:local", "otel-reliability:kafka")
NOT_HARDENED = {"backend"}
"""An all-in-one image to try things with writes where it likes, and says so."""


def services(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DOCKER / file).read_text())["services"]
    return found


EACH = [
    pytest.param(file, name, id=f"{file}-{name}") for file in ALL_FILES for name in services(file)
]


def test_they_are_as_the_compose_specification_wants_them() -> None:
    checker = Path(sysconfig.get_path("scripts")) / "check-jsonschema"
    done = subprocess.run(
        [
            checker,
            "--builtin-schema",
            "vendor.compose-spec",
            *(DOCKER / file for file in ALL_FILES),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("file", "name"), EACH)
def test_every_image_is_pinned_or_built_here(file: str, name: str) -> None:
    service = services(file)[name]

    if service["image"] in OURS:
        extra = service["build"].get("args", {}).get("EXTRA")
        assert (
            extra is None
            or "\nquixstreams==" in (DOCKER / f"requirements.{extra}.lock").read_text()
        )
        assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}", service["image"])


@pytest.mark.parametrize(("file", "name"), EACH)
def test_every_container_is_bounded_and_hardened(file: str, name: str) -> None:
    service = services(file)[name]

    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert service["pids_limit"] > 0
    assert service["logging"]["options"]["max-size"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert name in NOT_HARDENED or (service["read_only"], service["cap_drop"]) == (
        name != "kafka",
        ["ALL"],
    )
    assert "privileged" not in service


@pytest.mark.parametrize("file", ALL_FILES)
def test_ports_are_published_once_and_on_this_machine_only(file: str) -> None:
    published = [port for service in services(file).values() for port in service.get("ports", ())]
    outside = [port.rsplit(":", 2)[1] for port in published]

    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len(set(outside)) == len(outside)


@pytest.mark.parametrize(("file", "name"), EACH)
def test_every_mount_is_there_and_every_volume_declared(file: str, name: str) -> None:
    declared = yaml.safe_load((DOCKER / file).read_text())["volumes"]
    for mount in services(file)[name].get("volumes", ()):
        source, _, target = mount.partition(":")
        if source.startswith("."):
            assert (DOCKER / source).exists(), source
            assert target.endswith(":ro")
        else:
            assert source in declared


@pytest.mark.parametrize(("file", "name"), EACH)
def test_whoever_waits_for_health_waits_for_a_service_that_tells_it(file: str, name: str) -> None:
    everybody = services(file)
    for other, how in everybody[name].get("depends_on", {}).items():
        tells = "healthcheck" in everybody[other] or everybody[other]["image"] in OURS
        assert tells or how["condition"] == "service_started"


@pytest.mark.parametrize("file", FILES)
def test_the_settings_of_the_service_are_settings(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = dict(
        re.findall(r"(OTEL_RELIABILITY_\w+)=(\S+:\d+)", (DOCKER / "Dockerfile").read_text())
    )
    for variable, value in {**image, **services(file)["otel-reliability"]["environment"]}.items():
        monkeypatch.setenv(variable, value)
    done = call(capsys, "serve", "--check")

    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("file", FILES)
def test_the_fleet_s_command_is_one(file: str) -> None:
    name, *arguments = services(file)["fleet"]["command"]
    context = demo.make_context(name, arguments)
    found = re.fullmatch(r"http://([\w-]+):4318", context.params["endpoint"])

    assert isinstance(context, click.Context)
    assert found is not None
    assert found[1] in services(file)
    assert found[1] in services(file)["fleet"]["depends_on"]


@pytest.mark.real
def test_prometheus_takes_its_configuration_and_its_rules(promtool: Promtool) -> None:
    done = promtool("check", "config", DOCKER / "prometheus" / "prometheus.yml")
    config = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    (target,) = config["scrape_configs"][0]["static_configs"][0]["targets"]

    assert done.returncode == 0, done.stderr
    assert "rules found" in done.stdout
    assert target == "otel-reliability:9464"
    assert "otel-reliability" in services("compose.yaml")


@pytest.mark.real
def test_the_collector_takes_its_configuration_and_hands_on_what_the_fleet_sends(
    collector: Collectors,
) -> None:
    with serving() as running:
        gateway = collector(
            DOCKER / "collector.yaml", env={"OTEL_RELIABILITY_ENDPOINT": running.target}
        )
        fleet = Replay(Endpoint(gateway.http))
        for _ in range(2):
            fleet.round()
        until(
            lambda: (
                running.sum("otel_reliability_log_records_total", disposition="evaluation") >= 4
            ),
            "judgements",
        )
        until(
            lambda: running.sum("otel_reliability_spans_total", disposition="received") >= 100,
            "spans",
        )
        running.finalize()
        runs = running.sum("agent_reliability_runs_total", service_name=SERVICE)

    assert runs == 2 * A_ROUND
    assert "otel-reliability" in services("compose.yaml")


def test_grafana_finds_its_data_source_under_the_name_that_dashboards_use() -> None:
    found = yaml.safe_load(
        (DOCKER / "grafana/provisioning/datasources/prometheus.yaml").read_text()
    )
    (source,) = found["datasources"]
    provider = yaml.safe_load(
        (DOCKER / "grafana/provisioning/dashboards/otel-reliability.yaml").read_text()
    )
    mounts = services("compose.yaml")["grafana"]["volumes"]

    assert (source["uid"], source["url"]) == ("prometheus", "http://prometheus:9090")
    assert (
        f"../otel_reliability/dashboards:{provider['providers'][0]['options']['path']}:ro" in mounts
    )
    assert list((PROJECT / "otel_reliability/dashboards").glob("*.json"))
