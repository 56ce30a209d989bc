"""Calls that follow each other soon share a file of the spool. Each is read, stored and put aside
by itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.rooms.calls.call import NewCall
from inspector.rooms.calls.models import DroppedCalls
from inspector.rooms.recorder import spool
from inspector.rooms.recorder import storing as of_calls
from inspector.rooms.recorder.proxy import files
from inspector.rooms.recorder.proxy.files import FileKeeper, SpoolFile, Unwritten
from inspector.rooms.recorder.storing import Storing

from ...waiting import until
from .upstream import CHAT, ended, store_all


def write(file: SpoolFile, name: str) -> None:
    """Write a whole call of a conversation with this name."""
    head = {"at": 1.0, "path": CHAT, "provider": "h", "headers": {}, "conversation": name}
    file.begin(json.dumps(head).encode())
    body = {"model": "m", "messages": [{"role": "user", "content": f"text of {name}"}]}
    file.add(b"Q", json.dumps(body).encode())
    file.end(b'{"how": "ended", "error": "", "duration": 1.0}')


def sessions(path: Path) -> list[str]:
    return [spool.call_of(spool.exchange_of(each)).session for each in spool.read(path)]


@pytest.fixture
def keeper(folder):
    made = FileKeeper(folder)
    yield made
    made.end()


@pytest.fixture
def shared(folder):
    """A file with three calls."""
    file = SpoolFile(folder, Unwritten())
    for name in "abc":
        write(file, name)
    file.close()
    return next(folder.iterdir())


def test_calls_share_a_file_until_their_time_is_over(keeper, folder, monkeypatch):
    monkeypatch.setattr(files, "_SHARED_SECONDS", 2)
    file = keeper.take()
    for name in "ab":
        write(file, name)
        keeper.give_back(file)
        assert keeper.take() is file
    keeper.give_back(file)
    (path,) = ended(folder)
    assert sessions(path) == ["a", "b"]
    assert keeper.take() is not file


def test_the_next_call_has_the_last_file_and_no_new_one(keeper, monkeypatch):
    monkeypatch.setattr(files, "_SHARED_SECONDS", 60)
    new, used = keeper.take(), keeper.take()
    write(used, "a")
    keeper.give_back(new)
    keeper.give_back(used)
    assert keeper.take() is used


def test_a_file_whose_time_is_over_during_a_call_is_closed_behind_it(keeper, folder, monkeypatch):
    monkeypatch.setattr(files, "_SHARED_SECONDS", 0)
    file = keeper.take()
    write(file, "a")
    keeper.give_back(file)
    (path,) = ended(folder)
    assert sessions(path) == ["a"]


def test_a_full_file_takes_no_further_call(keeper, folder, monkeypatch):
    monkeypatch.setattr(files, "_SHARED_SECONDS", 60)
    monkeypatch.setattr(files, "_FULL", 400)
    for name in "abcde":
        file = keeper.take()
        write(file, name)
        keeper.give_back(file)
    keeper.end()
    found = [sessions(path) for path in sorted(folder.iterdir())]
    assert found == [["a", "b"], ["c", "d"], ["e"]]


def test_a_call_that_cannot_be_written_takes_no_earlier_call_with_it(folder, keeper):
    file = SpoolFile(folder, keeper._unwritten)
    write(file, "a")
    file.begin(b"{")
    file.flush()
    file.give_up(ValueError())
    keeper.give_back(file)
    until(lambda: len(list(folder.glob("*.call"))) == 2)  # the other one has the number
    first, _ = sorted(folder.glob("*.call"))
    assert sessions(first) == ["a"]


def test_calls_of_a_file_whose_proxy_was_killed_are_read(shared):
    left = shared.with_suffix(".part")
    left.write_bytes(shared.read_bytes() + b"H\x00\x00\x00\xffcut" + bytes(100))
    shared.unlink()
    assert spool.waiting(left.parent) == [left]
    assert sessions(left) == ["a", "b", "c"]


def test_each_call_is_stored_once(db, shared, folder):
    data = shared.read_bytes()
    stored = store_all(folder)
    shared.write_bytes(data)  # the recorder was killed before it could remove the file
    assert store_all(folder) == stored
    assert [call.memory_id for call in stored] == ["a", "b", "c"]


def test_a_refused_call_is_put_aside_alone(db, shared, folder, monkeypatch):
    store = of_calls.store

    def faulty(call: NewCall, *rest):
        if call.session == "b":
            raise RecursionError("too deep")
        return store(call, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(of_calls, "store", faulty)
        assert Storing(folder).store_waiting()
    (aside,) = (folder / "refused").iterdir()
    assert (aside.name, sessions(aside)) == (f"{shared.stem}.1.call", ["b"])
    assert DroppedCalls.objects.get().count == 1
    aside.rename(folder / aside.name)  # after an update
    assert len(store_all(folder)) == 3
    assert not DroppedCalls.objects.exists()


def test_a_stop_leaves_a_file_of_which_a_call_waits(db, shared, folder, monkeypatch):
    store, storing = of_calls.store, Storing(folder)

    def last(*arguments):
        storing.stop()
        return store(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(of_calls, "store", last)
        storing.store_waiting()
    assert storing.stored == 1
    assert shared.exists()
    assert len(store_all(folder)) == 3


def test_a_file_that_cannot_be_read_is_put_aside(db, folder):
    (folder / "1-1-1.call").write_bytes(b"no frames")
    assert Storing(folder).store_waiting()
    assert (folder / "refused/1-1-1.call").read_bytes() == b"no frames"
