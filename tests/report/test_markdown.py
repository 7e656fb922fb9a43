from __future__ import annotations

from pathlib import Path

from otel_reliability.report import markdown
from tests.report.build import attempts, comparison, report, runs
from tests.report.test_json import FULL


def test_the_report_is_a_document_with_tables(tmp_path: Path) -> None:
    text = markdown.render(
        report(tmp_path, attempts("refund", True, False, path="search") + runs("ask", first=3))
    )

    assert "## support (shop · test)" in text
    assert "| Path entropy | ╌╌╌╌╌╌╌╌╌ | 0.000 | 2 | 0.0 |" in text
    assert "| pass^k, all of k pass | 50 % | 0 % | 2 |" in text
    assert "| Missing data | runs that have it | for | how to add it |" in text


def test_every_table_row_has_as_many_cells_as_its_head(tmp_path: Path) -> None:
    spans = [
        *FULL,
        *runs("a|b", "<img src=x>", first=30, task="*x* | `y`", agent="[evil](http://x)|"),
    ]
    text = markdown.render(report(tmp_path, spans)).replace("\\|", "")
    cells = 0
    head = False
    for line in text.splitlines():
        starts = line.startswith("|")
        cells = line.count("|") if starts and not head else cells
        assert not starts or line.count("|") == cells, line
        head = starts

    assert "<img" not in text.replace("\\<img", "")
    assert "[evil](" not in text


def test_a_comparison_tells_both_sides_with_their_runs(tmp_path: Path) -> None:
    text = markdown.render(comparison(tmp_path, runs("a", "a", "a"), runs("a", "b"))[0])

    assert "| `path_entropy` | 0.000 | 3 | 1.000 | 2 | +1.000 worse, not tested |" in text
    assert "🟢 STABLE 100/100 → 🟠 UNSTABLE 42/100" in text


def test_tasks_stand_by_disagreement_with_where_they_part(tmp_path: Path) -> None:
    spans = [
        *runs("pay", "pay", task="alike"),
        *runs("pay", "mail", "mail", "mail", first=3, task="part|ing"),
    ]
    text = markdown.render(report(tmp_path, spans))

    assert (
        "| part\\|ing | – | 4 | 2 | 0.406 | 0.500 | 50 % | pay by 1 of 4; mail by 3 of 4 |"
        in text.replace("mail by 3 of 4; pay by 1 of 4", "pay by 1 of 4; mail by 3 of 4")
    )
    assert "| alike | – | 2 | 1 | 0.000 | 1.000 | 0 % | none |" in text
    assert text.index("| part") < text.index("| alike")
