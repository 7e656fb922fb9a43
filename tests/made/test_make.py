from __future__ import annotations

import gzip

from tests.made.make import FOLDER, files


def test_the_files_are_those_that_the_plan_makes() -> None:
    """Unpacked: not every zlib packs alike."""
    made = dict(files())

    assert {file.name for file in FOLDER.iterdir()} == made.keys(), "run python -m tests.made.make"
    for name, content in made.items():
        there = (FOLDER / name).read_bytes()
        unpacked = [
            gzip.decompress(one) if name.endswith(".gz") else one for one in (there, content)
        ]
        assert unpacked[0] == unpacked[1], f"{name}: run python -m tests.made.make"
