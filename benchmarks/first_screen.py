"""A fleet for the first screen: 230 conversations of tenants with releases, dates and causes.

    DATABASE_URL=sqlite:////tmp/fleet.sqlite3 python -m benchmarks.first_screen

It fills an empty database as if programs had written to it for 20 days, and keeps the derived rows.
Three things happened: hooli/ sends tool results without their call since this morning (release
4.2.0), northwind/ sends twice as much since a Tuesday's release, and acme/ has a larger limit for
some days, so that nobody has to repeat a number.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from unittest.mock import patch

from benchmarks.database import prepare_empty

AGES = 20  # days
TENANTS = {
    "northwind/": 36,
    "acme/": 66,
    "globex/": 60,
    "initech/": 40,
    "umbrella/": 12,
    "devs/": 5,
}
HOOLI = 11
WORDS = ("Where is my parcel?", "Can I change the address?", "When will it come?", "Thank you!")


class Clock:
    """The time as of which conversations are written."""

    def __init__(self, now: datetime) -> None:
        self.now = self.real = now

    @contextmanager
    def set(self) -> Iterator[None]:
        with patch("django.utils.timezone.now", lambda: self.now):
            yield

    def at(self, days_ago: float) -> None:
        self.now = self.real - timedelta(days=days_ago)

    def passes(self, minutes: float) -> None:
        self.now = min(self.real, self.now + timedelta(minutes=minutes))


def fill(now: datetime | None = None, share: float = 1.0) -> int:
    """Write the fleet, or a `share` of it, and return the number of its conversations."""
    from django.utils import timezone

    from chatmemory.models import Memory

    chance = random.Random(76)
    clock = Clock(now or timezone.now())
    with clock.set():
        for tenant, count in TENANTS.items():
            for n in range(max(1, round(count * share))):
                clock.at(AGES * chance.random())
                _conversation(clock, tenant, n, chance)
        _acme_gets_a_larger_limit(clock)
        clock.at(0)
        for n in range(max(3, round(HOOLI * share))):
            clock.now = clock.real - timedelta(minutes=100 - 8 * n)
            _refused(clock, f"hooli/parcel-{n:02}", {"release": "4.2.0"})
        clock.now = clock.real - timedelta(hours=30)
        _refused(clock, "northwind/desk-900", {"release": "2026.48"})
    return int(Memory.objects.count())


def _conversation(clock: Clock, tenant: str, n: int, chance: random.Random) -> None:
    from chatmemory import AiMessage, SystemMessage, TokenWindow, UserMessage, services

    age = (clock.real - clock.now) / timedelta(days=1)
    is_new = tenant == "northwind/" and age < 4
    release = {"northwind/": "2026.48" if is_new else "2026.47", "acme/": "7.1"}.get(tenant, "1.0")
    memory_id = f"{tenant}chat-{n:03}"
    limit = 350 if tenant == "acme/" else 8_000
    services.create(memory_id, TokenWindow(limit), {"release": release})
    say = _Saying(clock, memory_id)
    brief = "You answer customers of a shop. " * (
        60 if is_new else 25 if tenant != "devs/" else 200
    )
    if tenant != "acme/":
        say(SystemMessage(brief))
    number = f"BW-{chance.randint(100_000, 999_999)}"
    say(UserMessage(f"My order is {number}. {chance.choice(WORDS)}"), AiMessage("I will look."))
    for _ in range(chance.randint(3, 7)):
        say(UserMessage(chance.choice(WORDS)), AiMessage("It is on its way. " * 12))
    if tenant == "acme/" and 7 < age < 13 and chance.random() < 0.7:
        say(AiMessage("What is the number of your order?"))
        say(UserMessage(f"As I said: {number}."), AiMessage("Thank you."))


def _acme_gets_a_larger_limit(clock: Clock) -> None:
    """Change the policy of all conversations of acme/ six days ago; some of them go on since."""
    from chatmemory import AiMessage, TokenWindow, UserMessage, services
    from chatmemory.models import Memory

    ids = (
        Memory.objects.filter(id__startswith="acme/").order_by("id").values_list("id", "updated_at")
    )
    for n, (memory_id, updated_at) in enumerate(list(ids)):
        clock.at(6)
        if updated_at > clock.now:
            continue
        services.change(memory_id, policy=TokenWindow(3_000))
        if n % 2:
            clock.at(5 - 4 * n / 70)
            say = _Saying(clock, memory_id)
            for words in WORDS:
                say(UserMessage(words), AiMessage("It is on its way."))


def _refused(clock: Clock, memory_id: str, labels: dict[str, str]) -> None:
    """Write a conversation of a client that sends the result of a call without the call."""
    from chatmemory import MessageWindow, ToolExecutionResultMessage, UserMessage, services

    services.create(memory_id, MessageWindow(20), labels)
    say = _Saying(clock, memory_id)
    say(UserMessage("Where is my parcel now?"))
    say(ToolExecutionResultMessage("call_1", "track", "It is in Lyon."))
    say(UserMessage("Is it still in Lyon?"))


class _Saying:
    """Adds messages to a conversation, a minute after each other."""

    def __init__(self, clock: Clock, memory_id: str) -> None:
        self._clock, self._memory_id = clock, memory_id

    def __call__(self, *messages: object) -> None:
        from chatmemory import services

        for each in messages:
            services.add(self._memory_id, [each])  # type: ignore[list-item]
            self._clock.passes(1)


def main(arguments: Sequence[str] = ()) -> None:
    prepare_empty()
    from django.core.management import call_command

    from inspector.rooms.doctor.choosing import choose_providers

    choose_providers("", ["openai", "anthropic"])
    print(f"{fill():,} conversations")
    call_command("keep", once=True)


if __name__ == "__main__":
    main(sys.argv[1:])
