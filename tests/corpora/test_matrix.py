from __future__ import annotations

import pytest

from tests.corpora.labels import LABELS
from tests.corpora.matrix import PAGE, page
from tests.corpora.recordings import CAPTURES


@pytest.mark.skipif(not CAPTURES, reason="../shared/corpora/captured is not here")
def test_the_page_has_not_fallen_behind() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.corpora.matrix`"


@pytest.mark.skipif(not CAPTURES, reason="../shared/corpora/captured is not here")
def test_every_capture_has_a_label() -> None:
    assert set(LABELS) == set(CAPTURES)
    assert len(set(LABELS.values())) == len(LABELS)
