from __future__ import annotations

import re

from otel_reliability.conventions import notes
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "attributes.md").read_text(encoding="utf-8")
READ = {
    value for name, value in vars(notes).items() if name.isupper() and isinstance(value, str)
} - {notes.PREFIX}


def test_page_lists_every_attribute() -> None:
    rows = set(re.findall(r"^\| `(reliability\.[\w.]+)", PAGE, re.MULTILINE))

    assert rows == READ


def test_snippets_set_attributes_that_are_read() -> None:
    used = set(re.findall(r'"(reliability\.[\w.]+)"', PAGE))

    assert {"typescript", "java", "go", "python"} <= set(
        re.findall(r"^```(\w+)", PAGE, re.MULTILINE)
    )
    assert {
        name for name in used if name not in READ and not name.startswith(notes.BRANCH_PREFIX)
    } == set()
