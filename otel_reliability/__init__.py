"""Reliability of AI agents, from the telemetry they already emit."""
