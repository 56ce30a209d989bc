"""What the strip of the first screen costs: by page, by refresh, and by added messages.

    DATABASE_URL=postgres://… python -m benchmarks.hours [conversations]

It fills an empty database with conversations that have hours (100,000 of 20 messages by default),
and prints the CPU time of a refresh, of the kept strip and of other splits. Before that it adds
messages to 200 conversations, and prints what their hours cost. The thread of keepers rests for
three times as long as its rounds, so that all keepers together use a quarter of a core at most.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from time import process_time
from typing import Any

from benchmarks.database import prepare_empty

CONVERSATIONS, AT_ONCE = 100_000, 5_000
ADDS, ACTIVE, LENGTH = 100, 200, 60
ROUNDS = 5
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
    """Print what the hours of 100 added messages cost, half of which are answers."""
    from chatmemory import AiMessage, TokenWindow, UserMessage, services
    from chatmemory.services import Rounds
    from inspector.rooms.hours.keeping import HoursKeeper

    chance = random.Random(76)
    ids = [f"active/{n}" for n in range(ACTIVE)]
    for each in ids:
        services.create(each, TokenWindow(1_000))
        services.add(
            each, [UserMessage("Where is my parcel?"), AiMessage("On it. ")] * (LENGTH // 2)
        )
        services.keep(each)
    rounds = Rounds([HoursKeeper()])
    rounds.keep_some(timedelta(hours=1).total_seconds())
    found = []
    for n in range(ROUNDS):
        for each in chance.choices(ids, k=ADDS):
            is_answer = chance.random() < 0.5
            services.add(each, [AiMessage("Soon.") if is_answer else UserMessage(f"And now, {n}?")])
        found.append(cpu_of(lambda: rounds.keep_some(LONG)))
    print(f"hours of {ADDS} adds: {min(found):,.0f} ms")


def main(arguments: Sequence[str] = ()) -> None:
    prepare_empty()
    derivation()
    fill(int(arguments[0]) if arguments else CONVERSATIONS)
    strip()


if __name__ == "__main__":
    main(sys.argv[1:])
