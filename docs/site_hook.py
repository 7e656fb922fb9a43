"""MkDocs hook: copy the files outside docs/ that pages link to into the site, below `project/`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = "project"
LINK: Final = re.compile(r"""(\]\(|\b(?:src|srcset)=")([^)\s"#:]+)((?:#[^)\s"]*)?[)"])""")


def on_files(files: Any, config: Any) -> Any:
    """Add every file of the project that a page links to, and what these pages link to in turn."""
    waiting = [Path(config["docs_dir"]) / file.src_uri for file in files.documentation_pages()]
    while waiting:
        page = waiting.pop()
        for target in _outside(page):
            name = _place(target)
            if files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, abs_src_path=str(target)))
                waiting += [target] if target.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links of a page to where the files are in the site."""
    name = page.file.src_uri
    source = ROOT / (
        name.removeprefix(f"{FOLDER}/") if name.startswith(f"{FOLDER}/") else f"docs/{name}"
    )

    def link(found: re.Match[str]) -> str:
        target = _resolved(source, found[2])
        if target is None:
            return found[0]
        if not target.is_file():  # a folder: its README, else what it is called
            readme = target / "README.md"
            if not readme.is_file():
                return f"{found[1]}#{found[3]}".replace("##", "#")
            target = readme
        return found[1] + os.path.relpath(_place(target), Path(name).parent) + found[3]

    return LINK.sub(link, markdown)


def _place(target: Path) -> str:
    """Return where a file of the project is in the site; MkDocs leaves out names with a leading
    dot.
    """
    path = target.relative_to(ROOT).as_posix()
    return (
        path.removeprefix("docs/")
        if path.startswith("docs/")
        else f"{FOLDER}/{path.removeprefix('.')}"
    )


def _outside(page: Path) -> list[Path]:
    targets = (
        _resolved(page, found[2]) for found in LINK.finditer(page.read_text(encoding="utf-8"))
    )
    named = (
        target / "README.md" if target.is_dir() else target
        for target in targets
        if target is not None
    )
    return [
        target for target in named if target.is_file() and not target.is_relative_to(ROOT / "docs")
    ]


def _resolved(page: Path, target: str) -> Path | None:
    """Return the file or folder of the project that a link leads to; None if there is none."""
    found = (page.parent / target).resolve()
    return found if found.exists() and found.is_relative_to(ROOT) else None
