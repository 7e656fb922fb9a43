"""Agents that experiments run, as small programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

SDK_AGENT: Final = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("agent")
agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
with tracer.start_as_current_span("invoke_agent", attributes=agent):
    with tracer.start_as_current_span("execute_tool", attributes=tool):
        pass
provider.shutdown()
print(sys.stdin.read().upper())
"""
"""An agent with the SDK, which sends its spans as the environment says."""

PLAIN_AGENT: Final = """
import json, os, socket, sys, time, zlib

given = sys.stdin.read()
count_file = os.environ.get("COUNT_FILE")
number = 0
if count_file:
    with open(count_file, "a+") as file:
        file.write(".")
        file.seek(0)
        number = len(file.read())
behaviour = os.environ.get("BEHAVIOUR", "right")
if behaviour == "crash" or (behaviour == "crash second" and number == 2):
    sys.exit("no key")
if behaviour == "sleep":
    time.sleep(60)
if behaviour == "fickle":
    pairs = dict(pair.split("=") for pair in os.environ["OTEL_RESOURCE_ATTRIBUTES"].split(","))
    fate = zlib.crc32((pairs["reliability.task.id"] + pairs["reliability.trial"]).encode())
    behaviour = "right" if fate % 3 else "wrong"
now = time.time_ns()
names = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
if behaviour == "priced":
    names["reliability.run.cost"] = "0.4"
span = {
    "traceId": os.urandom(16).hex(), "spanId": os.urandom(8).hex(), "name": "invoke_agent",
    "startTimeUnixNano": str(now - 1000), "endTimeUnixNano": str(now),
    "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in names.items()],
}
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
host, _, port = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"].removeprefix("http://").partition(":")
head = f"POST /v1/traces HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Length: {len(body)}\\r\\n"
with socket.create_connection((host, int(port))) as receiver:
    receiver.sendall(f"{head}Content-Type: application/json\\r\\n\\r\\n{body}".encode())
    assert b" 200 " in receiver.recv(1_000)
print("sorry" if behaviour == "wrong" else given.upper())
"""
"""An agent without an SDK: it knows nothing of the attempt but the endpoint. It starts a hundred
times, so it imports little.
"""

NODE_AGENT: Final = """
const crypto = require("node:crypto");
const now = BigInt(Date.now()) * 1000000n;
const text = (key, value) => ({ key, value: { stringValue: value } });
const named = process.env.OTEL_RESOURCE_ATTRIBUTES.split(",").map((pair) => pair.split("="));
const [, traceId, parentSpanId] = process.env.TRACEPARENT.split("-");
const span = {
  traceId, parentSpanId, spanId: crypto.randomBytes(8).toString("hex"), name: "invoke_agent",
  startTimeUnixNano: String(now - 1000n), endTimeUnixNano: String(now),
  attributes: [text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", "node")],
};
const resource = { attributes: named.map(([key, value]) => text(key, decodeURIComponent(value))) };
const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] });
fetch(`${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`, {
  method: "POST", body, headers: { "Content-Type": "application/json" },
}).then(() => console.log(process.argv[2].toUpperCase()));
"""
"""An agent in JavaScript, which continues the trace it is handed."""


def written(folder: Path, program: str) -> list[str]:
    """Write a program in Python; return the command that runs it."""
    path = folder / "agent.py"
    path.write_text(program)
    return [sys.executable, str(path)]
