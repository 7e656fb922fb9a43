"""Conventions: what spans of each family of instrumentations mean. `TABLE` is the one list of them,
in the order asked.

To add one: a file with its keys and a `read`, a row here, a fixture in the tests
(docs/contributing/add-a-convention.md).
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions.adapters.agentops import AgentOps
from otel_reliability.conventions.adapters.by_name import ByName
from otel_reliability.conventions.adapters.claude_code import ClaudeCode
from otel_reliability.conventions.adapters.codex import Codex
from otel_reliability.conventions.adapters.copilot import Copilot
from otel_reliability.conventions.adapters.embabel import Embabel
from otel_reliability.conventions.adapters.gemini_cli import GeminiCli
from otel_reliability.conventions.adapters.genai import GenAI
from otel_reliability.conventions.adapters.genkit import Genkit
from otel_reliability.conventions.adapters.google_adk import GoogleADK
from otel_reliability.conventions.adapters.haystack import Haystack
from otel_reliability.conventions.adapters.laminar import Laminar
from otel_reliability.conventions.adapters.langchain import GenAILangChain
from otel_reliability.conventions.adapters.langchain4j import LangChain4j
from otel_reliability.conventions.adapters.langfuse import Langfuse
from otel_reliability.conventions.adapters.langsmith import LangSmith
from otel_reliability.conventions.adapters.livekit import LiveKit
from otel_reliability.conventions.adapters.llama_index import LlamaIndex
from otel_reliability.conventions.adapters.logfire import Logfire
from otel_reliability.conventions.adapters.mastra import Mastra
from otel_reliability.conventions.adapters.mcp import Mcp
from otel_reliability.conventions.adapters.mlflow import MLflow
from otel_reliability.conventions.adapters.ms_agent_framework import MSAgentFramework
from otel_reliability.conventions.adapters.openclaw import OpenClaw
from otel_reliability.conventions.adapters.openinference import OpenInference
from otel_reliability.conventions.adapters.openlit import OpenLit
from otel_reliability.conventions.adapters.openllmetry import OpenLLMetry
from otel_reliability.conventions.adapters.pipecat import Pipecat
from otel_reliability.conventions.adapters.pydantic_ai import PydanticAI
from otel_reliability.conventions.adapters.qwen_code import QwenCode
from otel_reliability.conventions.adapters.session_files import SessionFiles
from otel_reliability.conventions.adapters.spring_ai import SpringAI
from otel_reliability.conventions.adapters.strands import Strands
from otel_reliability.conventions.adapters.trpc_agent import TrpcAgent
from otel_reliability.conventions.adapters.vercel import Vercel
from otel_reliability.conventions.adapters.voltagent import VoltAgent
from otel_reliability.conventions.base import Convention

TABLE: Final[tuple[Convention, ...]] = (
    # keyed on a scope
    ClaudeCode(),
    Codex(),
    Copilot(),
    GeminiCli(),
    QwenCode(),
    SessionFiles(),
    Langfuse(),
    LangSmith(),
    MLflow(),
    OpenLit(),
    GoogleADK(),
    Strands(),
    MSAgentFramework(),
    Haystack(),
    LlamaIndex(),
    LiveKit(),
    Mastra(),
    Logfire(),
    GenAILangChain(),
    PydanticAI(),
    Pipecat(),
    LangChain4j(),
    VoltAgent(),
    OpenClaw(),
    TrpcAgent(),
    # keyed on attributes; Vercel's own beat those that OpenInference's exporter adds, and
    # OpenInference's and Traceloop's kinds beat a GenAI operation on the same span
    Vercel(),
    OpenInference(),
    OpenLLMetry(),
    AgentOps(),
    Genkit(),
    Embabel(),
    SpringAI(),
    Laminar(),
    GenAI(),
    Mcp(),
    # keyed on names
    ByName(),
)
