"""The fixture `serve`: services as processes of their own."""

from __future__ import annotations

from tests.service.served import serve

__all__ = ["serve"]
