"""The hook of mkdocs.yml: pages that lie beside docs/ belong to the site, other links leave it.

Links in docs/ are those of a checkout, so that they work there too. On the site a link to a page
leads to that page, and a link to any other file to the address of the sources.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
BESIDE = ["SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/conformance/FORMAT.md"]
BESIDE += sorted(
    page.relative_to(ROOT).as_posix() for page in ROOT.glob("inspector/rooms/*/README.md")
)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
# GitHub begins a list or a table below a line of text, Python-Markdown below an empty line.
BELOW_TEXT = re.compile(r"^(?![-|#>\s]|\d+\. )(.+\n)(?=- |\d+\. |\|)", re.MULTILINE)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie beside docs/."""
    from mkdocs.structure.files import File

    for path in BESIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page, and set its lists apart; blocks of code stay as they are."""

    def changed(text: str) -> str:
        linked = LINK.sub(lambda found: rewritten(found[1], page.file.src_uri), text)
        return BELOW_TEXT.sub(r"\1\n", linked)

    parts = FENCED.split(markdown)
    parts[::2] = map(changed, parts[::2])
    return "".join(parts)


def rewritten(link: str, uri: str) -> str:
    """Return the link of a page of the site in the place of its link in the checkout."""
    page = uri if uri in BESIDE else f"docs/{uri}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if target == "README.md":
        target = "docs/index.md"
    if target.startswith("docs/"):
        on_site = target.removeprefix("docs/")
    elif target in BESIDE:
        on_site = target
    else:
        return f"{SOURCES}/blob/main/{target}"
    return posixpath.relpath(on_site, posixpath.dirname(uri) or ".")
