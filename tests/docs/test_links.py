from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_every_link_leads_to_a_file_and_a_section_of_it(page: Path) -> None:
    for target in pages.targets(page):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page

        assert found.exists(), target
        assert not anchor or anchor in pages.anchors(found), target


def test_every_page_of_the_folder_is_in_its_index() -> None:
    index = pages.ROOT / "docs" / "README.md"
    named = {(index.parent / target.partition("#")[0]).resolve() for target in pages.targets(index)}

    assert set(index.parent.rglob("*.md")) - {index} <= named
