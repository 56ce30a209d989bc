"""What the strip of the first screen costs: by page, by refresh, and by added messages.

    DATABASE_URL=postgres://… python -m benchmarks.hours [conversations]

It fills an empty database with conversations that have hours (100,000 of 20 messages by default),
and prints the CPU time of a refresh, of the kept strip and of other splits. Before that it adds 100
messages a second to 200 conversations, and prints the share of a core that all keepers take, and
how old their rows are.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from time import process_time
from typing import Any
from unittest.mock import patch

from benchmarks.database import prepare_empty
from benchmarks.first_screen import Clock

CONVERSATIONS, AT_ONCE = 100_000, 5_000
ADDS, ACTIVE, LENGTH, SECONDS = 100, 200, 60, 120
LONG = 600.0


def cpu_of(call: Callable[[], Any], times: int = 1) -> float:
    """Return the least CPU time of a call, in milliseconds."""
    found = []
    for _ in range(times):
        began = process_time()
        call()
        found.append(1_000 * (process_time() - began))
    return min(found)


def fill(count: int) -> None:
    """Store conversations of 40 tenants and 12 releases with four hours each, by their rows."""
    from django.utils import timezone

    from chatmemory import AiMessage, MessageWindow, UserMessage, services
    from chatmemory.models import Memory
    from inspector.rooms.hours.clock import HOUR, hour_of
    from inspector.rooms.hours.models import Hour, KeptHours

    services.create("model", MessageWindow(20))
    services.add("model", [UserMessage("hello"), AiMessage("yes")] * 10)
    services.keep("model")
    model, kept = Memory.objects.get(pk="model"), KeptHours.objects.get(pk="model")
    now = hour_of(timezone.now())

    def copies(row: Any, **changes: Any) -> Any:
        values = {each.attname: getattr(row, each.attname) for each in row._meta.concrete_fields}
        return type(row)(**{**values, **changes})

    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(count, first + AT_ONCE))
        ids = {n: f"tenant{n % 40}/{n}" for n in numbers}
        Memory.objects.bulk_create(
            copies(model, id=ids[n], labels={"release": f"{n % 12}"}, policy_limit=20 + n % 4)
            for n in numbers
        )
        KeptHours.objects.bulk_create(copies(kept, memory_id=ids[n]) for n in numbers)
        Hour.objects.bulk_create(
            Hour(
                memory_id=ids[n],
                hour=now - HOUR * ((7 * n + 83 * k) % 330),
                turns=5,
                after_eviction=3,
                prompts=5,
                tokens=2_000 + n % 700,
                cost=1_000 * (2_000 + n % 700),
                cases='[["user_repeated",""]]' if (n + k) % 50 == 0 else "",
            )
            for n in numbers
            for k in range(4)
        )


def strip() -> None:
    """Print the CPU time of a refresh, of the kept strip, and of another split."""
    from inspector.overview.selection import OverviewQuery
    from inspector.rooms.hours.figures import SHARE, refresh
    from inspector.rooms.hours.page import over_time

    took = cpu_of(refresh)
    print(f"refresh of all splits: {took:,.0f} ms, at most {100 / SHARE:.0f} % of a core")
    print(f"kept strip: {cpu_of(lambda: over_time(OverviewQuery()), 20):,.1f} ms")
    for split in ("label:release", "policy"):
        query = OverviewQuery(split=split)
        print(f"split by {split}: {cpu_of(partial(over_time, query), 20):,.1f} ms")
    for words, query in (
        ("a tenant", OverviewQuery(tenant="tenant3/")),
        ("all by their policy", OverviewQuery(policy="message_window")),
    ):
        took = cpu_of(partial(over_time, query, at_once=True), 3)
        print(f"filter of {words}: {took:,.0f} ms")


def derivation() -> None:
    """Print what keepers cost while 100 messages a second arrive, and how old their rows are.

    The clock is simulated: between two rounds it goes on by the CPU time of a round, and by the
    rest of the thread. So the figures do not depend on what else runs on the machine.
    """
    from django.utils import timezone

    from chatmemory import AiMessage, TokenWindow, UserMessage, services
    from chatmemory.reading.feed import time_of
    from chatmemory.rooms import keepers
    from chatmemory.services import Rounds
    from inspector.shell.keeping import AT_A_STRETCH, LEAST, REST

    chance, clock = random.Random(76), Clock(timezone.now())
    began, spent, arrived = clock.now, 0.0, 0
    ids = [f"active/{n}" for n in range(ACTIVE)]
    rounds = Rounds()
    with clock.set(), patch("chatmemory.database.monotonic", process_time):
        for each in ids:
            services.create(each, TokenWindow(1_000))
            services.add(
                each, [UserMessage("Where is my parcel?"), AiMessage("On it. ")] * (LENGTH // 2)
            )
        while rounds.keep_some(LONG):
            pass
        while (passed := (clock.now - began).total_seconds()) < SECONDS:
            while arrived < passed * ADDS:
                arrived += 1
                words = AiMessage("Soon.") if chance.random() < 0.5 else UserMessage("And now?")
                services.add(chance.choice(ids), [words])
            took = cpu_of(partial(rounds.keep_some, AT_A_STRETCH)) / 1_000
            spent += took
            clock.now += timedelta(seconds=took + max(LEAST, REST * took))
    print(f"{ADDS} adds a second to {ACTIVE} conversations: {100 * spent / passed:.0f} % of a core")
    for keeper in keepers():
        oldest = min(keeper.model.objects.values_list("kept_at", flat=True))
        age = (clock.now - time_of(oldest)).total_seconds()
        print(f"oldest row of {keeper.model._meta.verbose_name}: {age:.0f} s")


def main(arguments: Sequence[str] = ()) -> None:
    prepare_empty()
    derivation()
    fill(int(arguments[0]) if arguments else CONVERSATIONS)
    strip()


if __name__ == "__main__":
    main(sys.argv[1:])
