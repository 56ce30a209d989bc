"""Errors come whole out of another process."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import chatmemory
from chatmemory import (
    ChatMemoryError,
    EstimatorUnavailable,
    InvalidValue,
    LongRecount,
    MessageTooLarge,
    NoRoomBesidePins,
    OversizedMessage,
    UnreadableTranscript,
    VersionConflict,
)
from chatmemory.formats import read_transcripts
from chatmemory.stores.http import HttpStoreError

SPECIAL = {
    EstimatorUnavailable: EstimatorUnavailable("m", "words"),
    LongRecount: LongRecount("words", 9_000),
    NoRoomBesidePins: NoRoomBesidePins("no room", 2),
    MessageTooLarge: MessageTooLarge("too long", 2),
    OversizedMessage: OversizedMessage("too big", 2),
    UnreadableTranscript: UnreadableTranscript(3, "no role"),
    VersionConflict: VersionConflict("m", 7, 5),
    HttpStoreError: HttpStoreError("503", 503, may_pass=True, retry_after=2.5),
}
PUBLIC = [
    each
    for each in map(chatmemory.__dict__.get, chatmemory.__all__)
    if isinstance(each, type) and issubclass(each, ChatMemoryError)
]


@pytest.mark.parametrize("kind", [*PUBLIC, HttpStoreError])
def test_an_error_is_pickled_and_copied(kind):
    error = SPECIAL.get(kind) or kind("why")
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6)]
    for same in [*copies, copy.copy(error), copy.deepcopy(error)]:
        assert type(same) is kind
        assert (str(same), same.args, vars(same)) == (str(error), error.args, vars(error))


def test_an_error_of_a_pool_is_raised_here():
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(UnreadableTranscript, match="the file is a string") as refused,
    ):
        pool.submit(read_transcripts, '"x"').result(timeout=60)
    assert refused.value.index == -1


def test_an_error_quotes_the_beginning_and_the_end_of_a_long_text():
    told = str(InvalidValue(f"unknown name {'x' * 10**6}: choose another one"))
    assert len(told) < 900
    assert told.startswith("unknown name xxx")
    assert told.endswith("xxx: choose another one")
