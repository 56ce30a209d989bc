"""The page of the package in a registry: README.md, with links that lead to the sources."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)")


class PackagePage(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(readme, metadata["urls"]["Source"]),
        }


def with_absolute_links(text: str, sources: str) -> str:
    """Put the address of the sources before each relative link; that of raw files for pictures."""
    kinds = {"": "blob", "!": "raw"}
    return LINK.sub(lambda found: f"{found[0]}{sources}/{kinds[found[1]]}/main/", text)
