"""Session files of coding agents against the truth of their recordings."""

from __future__ import annotations

import pytest

from tests.corpora.session_files import REASONS, recorded, releases


@pytest.mark.skipif(not releases(), reason="../shared/corpora/sessions is not here")
@pytest.mark.parametrize("release", releases())
def test_prompts_are_the_runs_that_really_were(release: str) -> None:
    """Every call and failure; tokens that a file does not hold are unknown, never too low."""
    prompts, extra = recorded(release)

    assert not extra
    for prompt in prompts:
        said = prompt.truth["prompt"]
        assert prompt.same_calls, said
        assert prompt.same_failures, said
        assert prompt.same_tokens or (prompt.is_named and release in REASONS), said


@pytest.mark.skipif(not releases(), reason="../shared/corpora/sessions is not here")
def test_reasons_stand_for_prompts_that_lack_something() -> None:
    lacking = {
        release
        for release in releases()
        if not all(prompt.same_tokens for prompt in recorded(release).prompts)
    }

    assert lacking == set(REASONS)
