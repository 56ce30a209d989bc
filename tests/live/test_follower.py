"""Watchers and their follower."""

from __future__ import annotations

import asyncio

import pytest

from chatmemory.live import Newest, Watcher

NOON, AN_HOUR_LATER = 12 * 3_600_000_000, 13 * 3_600_000_000

ONE_LEAVES_ONE_COMES = """
import asyncio
from asgiref.sync import sync_to_async
from chatmemory import UserMessage, services
from chatmemory.live import Follower

async def follow():
    follower = Follower()
    async with follower.watching("handover"):
        await asyncio.sleep(0)
    async with follower.watching("handover") as watcher:
        await sync_to_async(services.add)("handover", [UserMessage("hello")])
        return await asyncio.wait_for(watcher.later_than(0), 10)

print(asyncio.run(follow()))
"""


def test_a_cancelled_wait_loses_nothing():
    async def watch():
        watcher = Watcher()
        waiting = asyncio.create_task(watcher.later_than(0))
        await asyncio.sleep(0)
        for step in (1, 3, 2):
            watcher.announce(step)
        waiting.cancel()
        await asyncio.wait({waiting})
        return await asyncio.wait_for(watcher.later_than(0), 10)

    assert asyncio.run(watch()) == 3, "the newest step"


@pytest.mark.parametrize("found", [None, Newest(5, AN_HOUR_LATER)])
def test_a_watcher_is_told_that_its_conversation_is_gone_or_another_one(found):
    async def watch():
        watcher = Watcher()
        watcher.find(Newest(3, NOON))
        watcher.find(found)
        return await asyncio.wait_for(watcher.later_than(3), 10), watcher.is_deleted

    assert asyncio.run(watch()) == (3, True)


def test_a_watcher_that_arrives_as_the_last_one_leaves_is_told(served):
    served.create("handover")
    assert served.manage("shell", "-c", ONE_LEAVES_ONE_COMES).split()[-1] == "1"
