"""The table of capabilities has every line of the product once, and the map of the docs is its."""

from __future__ import annotations

import os
import re

from benchmarks.capabilities import (
    LAYERS,
    PRODUCT,
    ROOT,
    SUFFIXES,
    counted,
    drawn,
    part_of,
    sums,
)

DOCS = ROOT / "docs/architecture.md"
BEGIN = "<!-- made by tests/architecture/test_capabilities.py; the sizes are lines -->\n```text\n"
END = "\n```\n<!-- end -->"
FARTHEST = 0.5  # that a size may be from that of today


def test_every_line_of_the_product_is_in_one_part():
    found = [file for top in PRODUCT for file in (ROOT / top).rglob("*") if file.suffix in SUFFIXES]
    files = [file for file in found if "__pycache__" not in file.parts]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert sum(each.product for each in counted().values()) == lines
    assert {part_of(file.relative_to(ROOT))[0] for file in files} == {*LAYERS}
    assert sums(counted())[""].product == 0


def test_the_docs_have_the_map():
    """`WRITE_MAP=1 pytest tests/architecture/test_capabilities.py` draws it again. The parts are
    today's, and the sizes nearly so.
    """
    text, today = DOCS.read_text("utf-8"), "\n".join(drawn())
    before, rest = text.split(BEGIN)
    map, _, after = rest.partition(END)
    if os.environ.get("WRITE_MAP"):
        DOCS.write_text(f"{before}{BEGIN}{today}{END}{after}", "utf-8")
        map = today
    written, counted = sizes_of(map), sizes_of(today)
    assert written.keys() == counted.keys(), "draw the map again"
    far = {
        part: (written[part], size)
        for part, size in counted.items()
        if abs(written[part] - size) > max(500, FARTHEST * size)
    }
    assert far == {}, "draw the map again"


def sizes_of(map: str) -> dict[str, int]:
    """Return the size of each part."""
    found = re.findall(
        r"^ *(\S.*?):? (\d[\d,]*)$", map.replace(" · ", "\n").replace(" ·\n", "\n"), re.M
    )
    return {part: int(size.replace(",", "")) for part, size in found}
