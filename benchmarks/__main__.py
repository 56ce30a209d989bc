"""All figures of the benchmarks, as a table and as lines of JSON. Exits with 1 if a limit is
missed.

make bench                # all of them
make bench QUICK=1        # smaller databases and fewer rounds, in about two minutes
make bench ARGS="add imports"
make bench POSTGRESQL=1   # the database's, on the server at BENCH_DATABASE_URL
make bench RECORD=1       # writes the figures and the plots into docs/
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.database import ON_POSTGRESQL
from benchmarks.measuring import measure
from benchmarks.record import RECORD, record

PARTS = (
    "library",
    "starts",
    "recall",
    "add",
    "chain",
    "peers",
    "imports",
    "size",
    "reading",
    "server",
    "growth",
    "waiting",
    "searches",
    "serving",
    "recorder",
)
OF_THE_DATABASE = (
    "add",
    "chain",
    "imports",
    "size",
    "reading",
    "server",
    "growth",
    "waiting",
    "searches",
)


if __name__ == "__main__":
    if unknown := [part for part in sys.argv[1:] if part not in PARTS]:
        sys.exit(f"{__doc__}\nThere is no part {unknown[0]!r}: the parts are {', '.join(PARTS)}")
    figures = []
    for part in sys.argv[1:] or (OF_THE_DATABASE if ON_POSTGRESQL else PARTS):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            figures += process.submit(measure, part).result()
    print()
    for figure in figures:
        print(figure.as_json())
    if RECORD:
        record(figures)
    sys.exit(0 if all(figure.ok for figure in figures) else 1)
