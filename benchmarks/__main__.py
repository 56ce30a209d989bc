"""All figures of the benchmarks, as a table and as lines of JSON. Exit 1 where a limit is missed.

make bench            # all of them
make bench QUICK=1    # smaller databases and fewer rounds, in about two minutes
make bench ARGS="add imports"
make bench RECORD=1   # writes the figures and the plots into docs/
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.measuring import measure
from benchmarks.record import RECORD, record

PARTS = (
    "library",
    "recall",
    "add",
    "chain",
    "peers",
    "imports",
    "size",
    "reading",
    "server",
    "growth",
    "searches",
    "serving",
)


if __name__ == "__main__":
    figures = []
    for part in sys.argv[1:] or PARTS:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            figures += process.submit(measure, part).result()
    print()
    for figure in figures:
        print(figure.as_json())
    if RECORD:
        record(figures)
    sys.exit(0 if all(figure.ok for figure in figures) else 1)
