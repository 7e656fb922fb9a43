"""Coding: how a coding agent works on files. Other agents have no such number."""

from __future__ import annotations

from otel_reliability.metrics.coding.edits_per_prompt import EditsPerPrompt
from otel_reliability.metrics.coding.failed_edit_share import FailedEditShare
from otel_reliability.metrics.coding.reads_before_edit import ReadsBeforeEdit
from otel_reliability.metrics.coding.tested_edit_share import TestedEditShare

ROWS = (ReadsBeforeEdit, TestedEditShare, FailedEditShare, EditsPerPrompt)
