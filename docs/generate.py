"""Write the pages that are made from the code: `make docs`. A test fails when a page has fallen
behind.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
BEHIND: Final = "<!-- Made from the code by `make docs`. -->\n\n"
MEASURED: Final = "<!-- Made by `make docs` from what `make bench` found. -->\n\n"


def settings() -> str:
    """Return the page of all settings."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "settings_pages.py"))["page"]
    return BEHIND + page()


def metrics() -> str:
    """Return the page of all metrics."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "metric_pages.py"))["page"]
    return BEHIND + page()


def performance() -> str:
    """Return the page of costs, from the measurements."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "performance_page.py"))["page"]
    return MEASURED + page()


def http_api() -> str:
    """Return the page of the service's HTTP API."""
    page: Callable[[], str] = runpy.run_path(str(HERE / "http_api.py"))["page"]
    return BEHIND + page()


def openapi() -> str:
    """Return the OpenAPI document of the service's HTTP API."""
    document: Any = runpy.run_path(str(HERE / "http_api.py"))["DOCUMENT"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def settings_schema() -> str:
    """Return the schema of a settings file, for editors."""
    schema: Callable[[], Any] = runpy.run_path(str(HERE / "settings_pages.py"))["schema"]
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _of_reference(name: str) -> Callable[[], str]:
    def page() -> str:
        write: Callable[[], str] = runpy.run_path(str(HERE / "reference_pages.py"))[name]
        return BEHIND + write()

    return page


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/cli.md": _of_reference("cli"),
    "reference/http-api.md": http_api,
    "reference/openapi.json": openapi,
    "reference/prometheus.md": _of_reference("prometheus"),
    "reference/python-api.md": _of_reference("python_api"),
    "reference/run-fields.md": _of_reference("run_fields"),
    "reference/settings.md": settings,
    "reference/metrics.md": metrics,
    "explanation/performance.md": performance,
    "reference/settings.schema.json": settings_schema,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
        print(HERE / name)
