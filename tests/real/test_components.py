"""Each real program really runs, and the handles tell the truth about it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.real import otlp
from tests.real.chromium.handle import BrowserFailed, Chromium
from tests.real.collector.handle import Collectors, Config
from tests.real.kafka.handle import Kafkas, ToolFailed
from tests.real.ports import HOST, free_port
from tests.real.prometheus.handle import Prometheuses, Promtool
from tests.real.prometheus.promql import QueryFailed
from tests.real.waiting import until
from tests.real.web import answers
from tests.shared import shared

pytestmark = pytest.mark.real

SERVICES = [f"service-{number}" for number in range(20)]
TRACE = bytes(range(16))


def to_file(path: Path) -> Mapping[str, Any]:
    """The settings of a file exporter that writes at once."""
    return {"path": str(path), "flush_interval": "50ms"}


def pipeline(receivers: Sequence[str], exporters: Sequence[str], processors: Sequence[str] = ()) -> Config:
    """One entry of `service.pipelines`."""
    return {"receivers": [*receivers], "processors": [*processors], "exporters": [*exporters]}


def spans_of(path: Path, at_least: int) -> Sequence[otlp.Written]:
    """The spans of a file, once it has so many."""

    def enough() -> Sequence[otlp.Written]:
        found = otlp.written(path)
        return found if len(found) >= at_least else []

    return until(enough, f"{at_least} spans in {path}")


class TestCollector:
    """The Collector, built from its modules."""

    def test_takes_spans_over_grpc_and_http_and_writes_them(self, collector: Collectors, tmp_path: Path) -> None:
        """A span sent through either door of the OTLP receiver comes out of the file exporter as it went in."""
        out = tmp_path / "spans.jsonl"
        config: Config = {
            "receivers": {"otlp": {}},
            "exporters": {"file": to_file(out)},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
        }
        running = collector(config)
        by_grpc = otlp.span(TRACE, b"\x01" * 8, "chat", gen_ai__operation__name="chat")
        by_http = otlp.span(TRACE, b"\x02" * 8, "execute_tool", parent=b"\x01" * 8, gen_ai__usage__input_tokens=7)

        otlp.send_grpc(running.grpc, otlp.of_service("by-grpc", [by_grpc]))
        otlp.send(running.http, otlp.of_service("by-http", [by_http]))

        found = dict(spans_of(out, 2))
        assert found["by-grpc"] == by_grpc
        assert found["by-http"] == by_http
        assert running.count("otelcol_receiver_accepted_spans", receiver="otlp") == 2

    @pytest.mark.parametrize("encoding", ["json", "protobuf"])
    def test_takes_a_recording_in_either_encoding(self, collector: Collectors, tmp_path: Path, encoding: str) -> None:
        """Replaying a recording delivers every line of it, ids in hex and numbers as strings understood."""
        recording, out = tmp_path / "recording.jsonl", tmp_path / "spans.jsonl"
        line = (
            '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},'
            '"scopeSpans":[{"spans":[{"traceId":"000102030405060708090a0b0c0d0e0f","spanId":"0101010101010101",'
            '"name":"chat","kind":3,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000"}]}]}]}\n'
        )
        recording.write_text("".join(line % service for service in SERVICES))
        config: Config = {
            "receivers": {"otlp": {}},
            "exporters": {"file": to_file(out)},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
        }

        sent = otlp.replay(recording, collector(config).http, encoding=encoding)

        assert sent == len(SERVICES)
        found = spans_of(out, len(SERVICES))
        assert [service for service, _ in found] == SERVICES
        assert {(span.trace_id, span.end_time_unix_nano) for _, span in found} == {(TRACE, 1_700_000_001_000_000_000)}

    def test_takes_recordings_of_real_agents(self, collector: Collectors, tmp_path: Path) -> None:
        """Spans of real frameworks come out one by one as the recording has them; evaluation events are taken as logs."""
        recording, out = shared("corpora/captured/langgraph-openlit.jsonl.gz"), tmp_path / "spans.jsonl"
        events = shared("corpora/captured/pydantic_ai-evals.logs.jsonl.gz")
        config: Config = {
            "receivers": {"otlp": {}},
            "exporters": {"file": to_file(out), "nop": {}},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"]), "logs": pipeline(["otlp"], ["nop"])}},
        }
        running = collector(config)

        otlp.replay(recording, running.http)
        sent = otlp.replay(events, running.http)

        recorded = otlp.written(recording)
        found = spans_of(out, len(recorded))
        assert {span.span_id: span.name for _, span in found} == {span.span_id: span.name for _, span in recorded}
        assert running.count("otelcol_receiver_accepted_log_records") >= sent > 0

    def test_the_tail_sampler_keeps_whole_traces_that_failed(self, collector: Collectors, tmp_path: Path) -> None:
        """Of a failed and a fine trace the tail sampler passes all spans of the failed one and none of the other."""
        out = tmp_path / "spans.jsonl"
        policy = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
        config: Config = {
            "receivers": {"otlp": {}},
            "processors": {"tail_sampling": {"decision_wait": "1s", "policies": [policy]}},
            "exporters": {"file": to_file(out)},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"], ["tail_sampling"])}},
        }
        running = collector(config)
        fine, failed = b"\x0a" * 16, b"\x0b" * 16
        root = otlp.span(failed, b"\x03" * 8, "invoke_agent")
        root.status.code = root.status.STATUS_CODE_ERROR
        child = otlp.span(failed, b"\x04" * 8, "chat", parent=root.span_id)

        otlp.send(running.http, otlp.of_service("a", [otlp.span(fine, b"\x05" * 8, "invoke_agent"), child]))
        otlp.send(running.http, otlp.of_service("a", [root]))

        assert {span.span_id for _, span in spans_of(out, 2)} == {root.span_id, child.span_id}
        decided = partial(running.count, "otelcol_processor_tail_sampling_global_count_traces_sampled")
        assert until(lambda: decided(sampled="false"), "a decision on the fine trace") == 1

    def test_a_static_split_gives_each_service_to_one_of_two(self, collector: Collectors, tmp_path: Path) -> None:
        """Two filters on a hash of the service's name send every service, whole, to exactly one of two replicas."""
        outs = [tmp_path / "left.jsonl", tmp_path / "right.jsonl"]
        name = 'FNV(resource.attributes["service.name"])'
        remainder = f"{name} - 2 * ({name} / 2)"
        config: Config = {
            "receivers": {"otlp": {}},
            "processors": {
                "filter/left": {"error_mode": "propagate", "traces": {"span": [f"{remainder} != 0"]}},
                "filter/right": {"error_mode": "propagate", "traces": {"span": [f"{remainder} == 0"]}},
            },
            "exporters": {"file/left": to_file(outs[0]), "file/right": to_file(outs[1])},
            "service": {
                "pipelines": {
                    "traces/left": pipeline(["otlp"], ["file/left"], ["filter/left"]),
                    "traces/right": pipeline(["otlp"], ["file/right"], ["filter/right"]),
                }
            },
        }
        running = collector(config)

        for at, service in enumerate(SERVICES):
            pair = [otlp.span(bytes([at + 1]) * 16, bytes([at + 1, of] * 4), "chat") for of in (1, 2)]
            otlp.send(running.http, otlp.of_service(service, pair))

        until(lambda: sum(len(otlp.written(out)) for out in outs) >= 2 * len(SERVICES), "every span at either side")
        left, right = ([service for service, _ in otlp.written(out)] for out in outs)
        assert sorted(left + right) == sorted(SERVICES * 2)
        assert not set(left) & set(right)
        assert left
        assert right

    def test_waits_for_an_exporter_that_is_away(self, collector: Collectors, tmp_path: Path) -> None:
        """What one Collector takes while the next is down arrives once that one is back on its address."""
        out = tmp_path / "spans.jsonl"
        last = collector(
            {
                "receivers": {"otlp": {}},
                "exporters": {"file": {**to_file(out), "append": True}},
                "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
            }
        )
        retry = {"initial_interval": "100ms", "max_interval": "200ms"}
        first = collector(
            {
                "receivers": {"otlp": {}},
                "exporters": {"otlp_http": {"endpoint": last.http, "retry_on_failure": retry}},
                "service": {"pipelines": {"traces": pipeline(["otlp"], ["otlp_http"])}},
            }
        )
        assert last.kill() == -9
        assert not last.running

        otlp.send(first.http, otlp.of_service("a", [otlp.span(TRACE, b"\x01" * 8, "chat")]))
        last.start()

        assert [span.span_id for _, span in spans_of(out, 1)] == [b"\x01" * 8]
        assert last.stop() == 0

    def test_names_what_is_wrong_with_a_configuration(self, collector: Collectors) -> None:
        """`complaint` is empty for a good configuration and names the unknown key of a bad one."""
        good: Config = {
            "receivers": {"otlp": {"protocols": {"http": {}}}},
            "exporters": {"nop": {}},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["nop"])}},
        }

        assert collector.complaint(good) == ""
        assert "no_such_key" in collector.complaint({**good, "exporters": {"nop": {"no_such_key": 1}}})


class TestPrometheus:
    """Debian's Prometheus and promtool."""

    def test_scrapes_the_collectors_span_metrics(self, collector: Collectors, prometheus: Prometheuses) -> None:
        """Spans become counts in the span_metrics connector, text in the Prometheus exporter, and a PromQL answer."""
        address = f"{HOST}:{free_port()}"
        config: Config = {
            "receivers": {"otlp": {}},
            "connectors": {"span_metrics": {"metrics_flush_interval": "100ms", "namespace": "anchor"}},
            "exporters": {"prometheus": {"endpoint": address}},
            "service": {
                "pipelines": {
                    "traces": pipeline(["otlp"], ["span_metrics"]),
                    "metrics": pipeline(["span_metrics"], ["prometheus"]),
                }
            },
        }
        running = collector(config)
        server = prometheus({"collector": address})

        otlp.send(running.http, otlp.of_service("shop", [otlp.span(TRACE, bytes([n]) * 8, "chat") for n in (1, 2, 3)]))

        found = server.ask.wait('anchor_calls_total{service_name="shop"}')
        assert [sample.value for sample in found] == [3.0]
        assert found[0].labels["span_name"] == "chat"
        assert server.ask.value("sum(up)") == 1

    def test_takes_what_the_collector_writes_to_it(self, collector: Collectors, prometheus: Prometheuses) -> None:
        """The Collector's remote-write exporter delivers the same counts without any scrape."""
        server = prometheus()
        config: Config = {
            "receivers": {"otlp": {}},
            "connectors": {"span_metrics": {"metrics_flush_interval": "100ms", "namespace": "anchor"}},
            "exporters": {"prometheusremotewrite": {"endpoint": server.write_url}},
            "service": {
                "pipelines": {
                    "traces": pipeline(["otlp"], ["span_metrics"]),
                    "metrics": pipeline(["span_metrics"], ["prometheusremotewrite"]),
                }
            },
        }

        otlp.send(collector(config).http, otlp.of_service("shop", [otlp.span(TRACE, b"\x01" * 8, "chat")]))

        found = server.ask.wait('{__name__=~"anchor_calls.*"} > 0')  # a new count begins with a zero
        assert [sample.value for sample in found] == [1.0]

    def test_keeps_rules(self, prometheus: Prometheuses, tmp_path: Path) -> None:
        """A recording rule and an alert of a rule file are evaluated and can be asked for."""
        rules = tmp_path / "rules.yaml"
        rules.write_text(
            "groups: [{name: g, rules: [{record: answer, expr: vector(42)}, {alert: Always, expr: answer > 41}]}]"
        )
        server = prometheus(rules=[rules])

        assert server.ask.wait("answer")[0].value == 42
        firing = server.ask.wait('ALERTS{alertstate="firing"}')
        assert [sample.labels["alertname"] for sample in firing] == ["Always"]
        spans = server.ask.span("answer", firing[0].at - 0.1, firing[0].at, 0.1)
        assert {sample.value for samples in spans for sample in samples} == {42.0}

    def test_keeps_its_store_over_a_restart(self, prometheus: Prometheuses) -> None:
        """A server restarted on the same folder answers on the same address and still knows the past."""
        server = prometheus()
        server.ask.api("status/config")
        at = server.ask.query("time()")[0].value

        server.restart()

        assert answers(f"{server.url}/-/ready")
        assert server.ask.value("time()") >= at

    def test_says_why_a_question_was_wrong(self, prometheus: Prometheuses) -> None:
        """A malformed expression raises with Prometheus' own words, and `value` insists on one series."""
        server = prometheus()

        with pytest.raises(QueryFailed, match="parse error"):
            server.ask.query("sum(")
        with pytest.raises(QueryFailed, match="gives 0 series, wanted one"):
            server.ask.value("no_such_series")

    def test_promtool_tells_good_rules_from_bad(self, promtool: Promtool, tmp_path: Path) -> None:
        """Promtool accepts a rule file that parses and refuses one with a broken expression, naming it."""
        good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
        text = "groups: [{name: g, rules: [{record: answer, expr: 'EXPRESSION'}]}]"
        good.write_text(text.replace("EXPRESSION", "sum(up)"))
        bad.write_text(text.replace("EXPRESSION", "sum(up"))

        assert promtool("check", "rules", good).returncode == 0
        refused = promtool("check", "rules", bad)
        assert refused.returncode != 0
        assert "unclosed left parenthesis" in refused.stderr


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The address of a page that fills itself in by a script, served on loopback."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<!doctype html><body style='margin:0;background:rgb(0,128,0)'><p id=answer></p>"
        "<script>setTimeout(() => { document.getElementById('answer').textContent = 6 * 7 }, 500)</script>"
    )
    (folder / "look.html").write_text(
        "<!doctype html><body><img src=page.png onload='const c = document.createElement(`canvas`).getContext(`2d`);"
        "c.drawImage(this, 0, 0); document.body.textContent = [this.width, this.height, ...c.getImageData(150, 100, 1, 1).data]'>"
    )
    server = ThreadingHTTPServer((HOST, free_port()), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class TestChromium:
    """Debian's Chromium, unpacked."""

    def test_runs_scripts_before_it_prints_the_dom(self, chromium: Chromium, page: str) -> None:
        """The DOM holds what a script put there, once the page was given the time the script waits for."""
        assert '<p id="answer">42</p>' in chromium.dom(page, settle=2.0)

    def test_paints_a_picture(self, chromium: Chromium, page: str, tmp_path: Path) -> None:
        """A screenshot is a PNG of the asked size in the page's colour, as the browser itself says of the picture."""
        picture = chromium.screenshot(page, tmp_path / "site" / "page.png", width=320, height=200)

        assert picture.read_bytes().startswith(b"\x89PNG")
        assert "<body>320,200,0,128,0,255</body>" in chromium.dom(f"{page}look.html", settle=2.0)

    def test_says_that_nobody_serves_a_page(self, chromium: Chromium) -> None:
        """An address where nobody listens raises; it is no empty page."""
        url = f"http://{HOST}:{free_port()}/"

        with pytest.raises(BrowserFailed, match=f"url {url}: the browser shows nothing"):
            chromium.dom(url)

    def test_says_that_it_could_not_start(self, tmp_path: Path) -> None:
        """A browser that ends with an error raises, with the address it was to show."""
        with pytest.raises(BrowserFailed, match="url about:blank: exit code 1"):
            Chromium(Path("/bin/false"), Path("/bin/false")).dom("about:blank")


class TestKafka:
    """A Kafka broker out of its jars."""

    def test_carries_spans_from_one_collector_to_another(
        self, kafka: Kafkas, collector: Collectors, tmp_path: Path
    ) -> None:
        """Spans written by the kafka exporter, one message a trace, are read by the kafka receiver, each trace whole;
        those sent while the broker was killed arrive after it is back.
        """
        broker = kafka()
        broker.create_topic("spans", partitions=2)
        out = tmp_path / "spans.jsonl"
        exporter = {
            "brokers": [broker.address],
            "partition_traces_by_id": True,
            "traces": {"topic": "spans", "encoding": "otlp_proto"},
            "retry_on_failure": {"initial_interval": "200ms", "max_interval": "500ms"},
        }
        receiver = {
            "brokers": [broker.address],
            "initial_offset": "earliest",
            "traces": {"topics": ["spans"], "encoding": "otlp_proto"},
        }
        writer = collector(
            {
                "receivers": {"otlp": {}},
                "exporters": {"kafka": exporter},
                "service": {"pipelines": {"traces": pipeline(["otlp"], ["kafka"])}},
            }
        )
        collector(
            {
                "receivers": {"kafka": receiver},
                "exporters": {"file": to_file(out)},
                "service": {"pipelines": {"traces": pipeline(["kafka"], ["file"])}},
            }
        )

        before = send_traces(writer.http, range(1, 7))
        spans_of(out, len(before))
        broker.kill()
        after = send_traces(writer.http, range(7, 10))
        broker.start()

        found = spans_of(out, len(before) + len(after))
        assert {span.span_id for _, span in found} == before | after

    def test_a_tool_that_fails_says_why(self, kafka: Kafkas) -> None:
        """Making a topic twice raises with Kafka's own words."""
        broker = kafka()
        broker.create_topic("once", settings=["retention.ms=1000"])

        with pytest.raises(ToolFailed, match="already exists"):
            broker.create_topic("once")


def send_traces(url: str, numbers: Sequence[int]) -> set[bytes]:
    """Send one trace of two spans a number, all in one request, and return the ids of the spans."""
    spans = [otlp.span(bytes([n]) * 16, bytes([n, of] * 4), "chat") for n in numbers for of in (1, 2)]
    otlp.send(url, otlp.of_service("a", spans))
    return {span.span_id for span in spans}
