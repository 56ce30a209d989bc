"""Measure adds with the chain of digests against adds without it.

Without the chain, the same columns are written, but empty. The adds are the ones in
`benchmarks.add`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import patch

from benchmarks.add import fill
from benchmarks.measuring import Elsewhere, Figure, compared, in_turns
from benchmarks.texts import texts

ROUNDS = 1_500  # many, since the difference is small
LIMIT = 1.05
COMPUTED = ("new_salt", "commitment_of", "digest_of")


def figures(_: str) -> Iterator[Figure]:
    from chatmemory import UserMessage, services
    from inspector.rooms.integrity import chain

    lines = texts()
    fill("m", lines)

    def milliseconds(*, without: tuple[str, ...] = ()) -> float:
        message = UserMessage(next(lines))
        with ExitStack() as patches:
            for name in without:
                patches.enter_context(patch.object(chain, name, lambda *_: b""))
            start = time.perf_counter()
            services.add("m", [message])
            return 1000 * (time.perf_counter() - start)

    calls = {
        "with them": Elsewhere(milliseconds),
        "without them": Elsewhere(lambda: milliseconds(without=COMPUTED)),
    }
    yield compared("add with digests of all that it writes", LIMIT, in_turns(calls, ROUNDS))
