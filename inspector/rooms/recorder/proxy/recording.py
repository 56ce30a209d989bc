"""Writes recorded calls to files of the spool (the folder of recorded calls).

A call consists of these frames:

- `H`: the request without its body, as JSON.
- `Q`: a piece of the request's body.
- `A`: the status and some headers of the answer, as JSON.
- `B`: a piece of the answer's body.
- `E`: how the call ended, as JSON: `{"how": "ended", "error": "", "duration": 1.25}`. If secrets
  were removed from bodies, `removed` is their number.

Bodies are written decoded. Secrets from headers and query strings are removed from the bodies. If
the recorder was killed during a call, the frame `E` is missing, and zeros can follow the last
frame.

For requests that are counted but not recorded, only the frames `H` and `E` are written. Then `H` is
one of these:

- `{"passed": "POST /v1/files"}`: a request that was passed on, but not recorded.
- `{"unwritten": 3}`: three calls that could not be written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from .decoding import Body
from .files import SpoolFile
from .headers import CONVERSATION, Answer, RequestHead, kept_headers
from .secrets import Cleaner, Fingerprints, Secrets, secrets_of_answer

if TYPE_CHECKING:  # the proxy runs without chatmemory
    from chatmemory.messages.json_values import JsonDict, JsonMap

COPIED = 32 * 2**20  # bytes of a request, and of an answer; the rest is passed on, not recorded
_KEPT = 500  # characters of a header
P = ParamSpec("P")

_ENCODING = b"content-encoding"


class _Copy:
    """The copy of a body that is written: decoded, without secrets, and up to a largest size."""

    def __init__(self, kind: bytes, encoding: bytes, file: SpoolFile, secrets: Secrets) -> None:
        self.cleaner = Cleaner(secrets)
        self.body = Body(encoding.decode("latin1"))
        self._kind, self._file, self._size = kind, file, 0
        self._is_ended = False

    @property
    def is_cut(self) -> bool:
        return self._size > COPIED

    def add(self, data: bytes) -> None:
        if self.is_cut:
            return
        for piece in self.body.pieces(data):
            self._size += len(piece)
            if self.is_cut:
                return
            self._write(self.cleaner.clean(piece))

    def end(self, found: JsonDict, is_whole: bool = True) -> None:
        """Write the rest of the body. Add to `found` whether the body was cut, had secrets, or
        could not be decoded. A second call does nothing.
        """
        if self._is_ended:
            return
        self._is_ended = True
        if is_whole:
            self.body.end()
        self._write(self.cleaner.clean(b"", is_last=True))
        if self.is_cut:
            found["is_cut"] = True
        if self.cleaner.removed:
            found["removed"] = found.get("removed", 0) + self.cleaner.removed
        if encoding := self.body.undecodable:
            undecodable = found.setdefault("undecodable", {})
            undecodable[self._kind.decode()] = self.cleaner.secrets.removed_from(encoding)

    def _write(self, data: bytes) -> None:
        if data:
            self._file.add(self._kind, data)


def _harmless(method: Callable[Concatenate[Recording, P], None]) -> Callable[..., None]:
    """Let an error in the recording end only the recording, and not the call. After the end, calls
    of the method do nothing.
    """

    @wraps(method)
    def tried(self: Recording, *args: P.args, **kwargs: P.kwargs) -> None:
        if self.is_ended:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return tried


class Recording:
    """Records one call in a file of the spool, piece by piece.

    `times` is for a call that has already ended: the time of its start, and its duration in
    seconds.
    """

    def __init__(
        self,
        file: SpoolFile,
        head: RequestHead,
        provider: str,
        times: tuple[float, float] | None = None,
    ) -> None:
        self._at, self._began = times[0] if times else time.time(), time.monotonic()
        self._duration = times[1] if times else None
        self.is_ended = False
        self._file, self._head, self._provider = file, head, provider
        self._secrets = head.secrets
        self._request: _Copy | None = None
        self._answer: _Copy | None = None
        self._found: JsonDict = {}  # what is special about the bodies

    def give_up(self, error: Exception) -> None:
        self.is_ended = True
        self._file.give_up(error)

    @_harmless
    def request_piece(self, data: bytes, is_last: bool) -> None:
        """Write a piece of the request's body. Before the first piece, write the head of the
        request.
        """
        request = self._request or self._begin()
        if data:
            request.add(data)
        if is_last:
            request.end(self._found)
        self._file.flush()

    def _begin(self) -> _Copy:
        """Write the head of the request. The file gets the head together with the first piece of
        the body.
        """
        beginning = _beginning(self._head, self._provider)
        self._file.begin(b'{"at": %a, %s' % (self._at, beginning))
        encoding = self._head.header(_ENCODING)
        self._request = _Copy(b"Q", encoding, self._file, self._secrets)
        return self._request

    @_harmless
    def answer(self, answer: Answer) -> None:
        """Record the head of the answer. The head is written to the file together with the first
        piece of the answer's body.
        """
        self._secrets = secrets_of_answer(answer.headers, self._secrets)
        encoding = answer.values.get(_ENCODING, b"")
        self._answer = _Copy(b"B", encoding, self._file, self._secrets)
        kept = _kept(answer.values, self._secrets)
        more = {"headers": kept} if kept else {}
        self._file.add(b"A", _json(b'"status": %d' % answer.status, more))

    @_harmless
    def answer_piece(self, data: bytes, is_last: bool) -> None:
        """Write a piece of the answer's body. With `is_last`, also end the recording."""
        assert self._answer
        if data:
            self._answer.add(data)
        if is_last:
            self._answer.end(self._found)
            self._end("ended")
        else:
            self._file.flush()

    @_harmless
    def end(self, how: str, error: str = "") -> None:
        """Write how the call ended: `how` is a word such as "failed" or "cut". If the recording has
        already ended, do nothing.
        """
        self._end(how, error)

    def _end(self, how: str, error: str = "") -> None:
        self.is_ended = True
        for copy in (self._request or self._begin(), self._answer):
            if copy:
                copy.end(self._found, is_whole=False)
        why = json.dumps(self._secrets.removed_from(error)).encode() if error else b'""'
        duration = self._duration or time.monotonic() - self._began
        first = b'"how": "%s", "error": %s, "duration": %a' % (how.encode(), why, duration)
        self._file.end(_json(first, self._found))


@lru_cache(maxsize=64)
def _beginning(head: RequestHead, provider: str) -> bytes:
    """Return the stored values of a request's head, as JSON without its first brace."""
    secrets = head.secrets
    found: JsonDict = {
        "path": secrets.removed_from(head.path),
        "provider": provider,
        "conversation": secrets.removed_from(head.header(CONVERSATION).decode("utf-8", "replace")),
        "headers": _kept(head.values, secrets),
    }
    if secrets:
        found["fingerprints"] = Fingerprints.of(secrets).as_json()
    return json.dumps(found)[1:].encode()


def _json(first: bytes, more: JsonMap) -> bytes:
    """Return a JSON object with the members `more`, after members that are already written. If
    `more` is empty, this is faster than `json.dumps`.
    """
    return b"{%s, %s" % (first, json.dumps(more)[1:].encode()) if more else b"{%s}" % first


def _kept(values: Mapping[bytes, bytes], secrets: Secrets) -> dict[str, str]:
    found = kept_headers(values)
    return {name: secrets.removed_from(value)[:_KEPT] for name, value in found.items()}


def count_passed(file: SpoolFile, head: RequestHead) -> None:
    """Write only the name of a request, such as `POST /v1/files`. The request is passed on and
    counted by this name, but not recorded. For methods other than POST, write nothing.
    """
    if name := head.passed_name:
        file.begin(json.dumps({"passed": head.secrets.removed_from(name)}).encode())
        file.end(b"{}")
