"""Conventions: what spans of each family of instrumentations mean. `TABLE` is the one list of them, in the order asked.

To add one: a file with its keys and a `read`, a row here, a fixture in the tests (docs/recipes.md).
"""

from __future__ import annotations

from typing import Final

from otel_reliability.conventions.base import Convention
from otel_reliability.conventions.by_name import ByName
from otel_reliability.conventions.claude_code import ClaudeCode
from otel_reliability.conventions.genai import GenAI
from otel_reliability.conventions.google_adk import GoogleADK
from otel_reliability.conventions.haystack import Haystack
from otel_reliability.conventions.langchain import GenAILangChain
from otel_reliability.conventions.langfuse import Langfuse
from otel_reliability.conventions.langsmith import LangSmith
from otel_reliability.conventions.llama_index import LlamaIndex
from otel_reliability.conventions.logfire import Logfire
from otel_reliability.conventions.mastra import Mastra
from otel_reliability.conventions.mcp import Mcp
from otel_reliability.conventions.mlflow import MLflow
from otel_reliability.conventions.ms_agent_framework import MSAgentFramework
from otel_reliability.conventions.openinference import OpenInference
from otel_reliability.conventions.openlit import OpenLit
from otel_reliability.conventions.openllmetry import OpenLLMetry
from otel_reliability.conventions.pydantic_ai import PydanticAI
from otel_reliability.conventions.strands import Strands
from otel_reliability.conventions.vercel import Vercel

TABLE: Final[tuple[Convention, ...]] = (
    # keyed on a scope
    Langfuse(),
    LangSmith(),
    MLflow(),
    OpenLit(),
    GoogleADK(),
    Strands(),
    MSAgentFramework(),
    Haystack(),
    LlamaIndex(),
    Mastra(),
    Logfire(),
    GenAILangChain(),
    PydanticAI(),
    # keyed on attributes; Traceloop's and OpenInference's kinds beat a GenAI operation on the same span
    OpenInference(),
    OpenLLMetry(),
    Vercel(),
    GenAI(),
    Mcp(),
    # keyed on names
    ClaudeCode(),
    ByName(),
)
