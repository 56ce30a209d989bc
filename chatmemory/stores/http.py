"""The store that keeps messages on a chatmemory server, over HTTP.

    store = HttpChatMemoryStore("https://chat.example.org", token)
    memory = MessageWindowChatMemory(id="order-7741", max_messages=20, store=store)

The memory evicts messages in this process. The server keeps the history and infers the reasons of
evictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import NO_CONTENT, NOT_FOUND
from typing import Self, TypeVar
from uuid import uuid4

from chatmemory.exceptions import ChatMemoryError, InvalidMessage, InvalidValue
from chatmemory.messages.codec import messages_from_json, messages_to_json
from chatmemory.messages.field_checks import brief
from chatmemory.messages.ids import address, check_text, storable_id
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.quotes import Query, Quotes
from chatmemory.patterns import declared_pattern
from chatmemory.windows.store import ChatMemoryStore

try:
    import httpx
except ModuleNotFoundError as error:
    raise ImportError(
        "HttpChatMemoryStore needs httpx: pip install '.[http]' in a checkout"
    ) from error

T = TypeVar("T")

RETRIED = (429, 503)
WAIT_MAX = 60.0  # the most seconds, even if Retry-After has more
PORT_MAX = 65_535
_TOKEN = declared_pattern(r"[!-~]+")
KEY_IN_USE = "urn:chatmemory:idempotency-key-in-use"


class HttpStoreError(ChatMemoryError):
    """Raised if a request to the server fails. `status` is the HTTP status, or None without a
    response.

    `may_pass` says whether the same request may succeed later. `retry_after` is how many seconds
    the server asks to wait, or 0.
    """

    def __init__(
        self, text: str, status: int | None = None, may_pass: bool = True, retry_after: float = 0
    ) -> None:
        super().__init__(text)
        self.status, self.may_pass, self.retry_after = status, may_pass, retry_after


class HttpChatMemoryStore(ChatMemoryStore):
    """A store of conversations on a chatmemory server. Thread-safe.

    - A failed request is repeated if it may succeed later: for example, if there was no response,
      or if the status was 429 or 503. It is sent at most `attempts` times.
    - All attempts of a write have one Idempotency-Key, so that the server stores the change only
      once.
    - Before a repetition, the store waits as many seconds as the header Retry-After says, at most
      60. Without this header, it waits `pause` seconds, then twice as long each time.

    Raises HttpStoreError if a request fails. Raises InvalidValue for an invalid base URL, a URL
    with credentials, or a token that cannot be sent. Raises UnstorableText for a text with a lone
    surrogate.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        attempts: int = 5,
        pause: float = 0.5,
        timeout: float = 30.0,
    ) -> None:
        self._attempts, self._pause = attempts, pause
        self._client = httpx.Client(
            base_url=_url_of_store(base_url),
            headers={"Authorization": f"Bearer {_checked_token(token)}"},
            timeout=timeout,
        )

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        request = self._client.build_request("GET", _in_store(memory_id))
        return self._answer(request, _messages_of)

    def search_history(self, memory_id: str, query: Query) -> Quotes:
        """Return quotes of the messages in a conversation's history that match a query. For an
        unknown id, the result has no hits. The token must allow reading the conversation.
        """
        url = f"memories/{_checked(memory_id)}/search_history/"
        given: dict[str, str | int] = {"query": query.text, "limit": query.limit}
        try:
            return self._answer(self._client.build_request("GET", url, params=given), _quotes_of)
        except HttpStoreError as error:
            if error.status == NOT_FOUND:
                return Quotes()
            raise

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        body = messages_to_json(messages)
        if not body.isascii():  # UTF-8 has no half of a character
            check_text(body, "a message")
        request = self._client.build_request("PUT", _in_store(memory_id), content=body)
        request.headers["Content-Type"] = "application/json"
        self._write(request)

    def delete_messages(self, memory_id: str) -> None:
        self._write(self._client.build_request("DELETE", _in_store(memory_id)))

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def _write(self, request: httpx.Request) -> None:
        request.headers["Idempotency-Key"] = uuid4().hex
        self._answer(request, _check_no_content)

    def _answer(self, request: httpx.Request, read: Callable[[httpx.Response], T]) -> T:
        """Send a request, and return what `read` makes of the response. Raises HttpStoreError."""
        for attempt in range(self._attempts - 1):
            try:
                return self._send(request, read)
            except HttpStoreError as error:
                if not error.may_pass:
                    raise
                time.sleep(error.retry_after or self._pause * 2**attempt)
        return self._send(request, read)

    def _send(self, request: httpx.Request, read: Callable[[httpx.Response], T]) -> T:
        what = f"{request.method} {request.url}"
        try:
            response = self._client.send(request)
        except httpx.RequestError as error:
            raise HttpStoreError(f"{what}: no response: {error or type(error).__name__}") from error
        status = response.status_code
        if response.is_success:
            try:
                return read(response)
            except InvalidMessage as error:
                why = f"this is no response of a chatmemory server, check the base URL: {error}"
                raise HttpStoreError(f"{what}: {status}: {why}", status) from error
        problem = _problem(response)
        title = problem.get("title", response.reason_phrase)
        detail = problem.get("detail", "this is no chatmemory server: check the base URL")
        retry_after = response.headers.get("Retry-After", "")
        raise HttpStoreError(
            f"{what}: {status} {title}: {detail}",
            status,
            may_pass=status in RETRIED or problem.get("type") == KEY_IN_USE,
            retry_after=min(float(retry_after), WAIT_MAX) if retry_after.isdecimal() else 0,
        )


def _in_store(memory_id: str) -> str:
    return f"store/{_checked(memory_id)}/"


def _checked(memory_id: str) -> str:
    """Return the id of a conversation as a segment of a URL. Raises InvalidValue for an invalid
    id.
    """
    if not storable_id(memory_id):
        raise InvalidValue("a memory id must have at least one character")
    return address(memory_id)


# The answers. Each raises InvalidMessage for a body that is not the server's, such as a page of a
# proxy.


def _messages_of(response: httpx.Response) -> list[ChatMessage]:
    if response.text.strip() == "null":
        raise InvalidMessage("expected a JSON array of messages, and got null")
    return messages_from_json(response.text, nulls=False)


def _quotes_of(response: httpx.Response) -> Quotes:
    return Quotes.from_json(response.text)


def _check_no_content(response: httpx.Response) -> None:
    if response.status_code != NO_CONTENT:
        raise InvalidMessage(f"expected the status {NO_CONTENT:d}, without a body")


def _url_of_store(base_url: object) -> httpx.URL:
    """Return the URL of the store on a server. Raises InvalidValue for an invalid base URL."""
    if isinstance(base_url, str):
        with suppress(httpx.InvalidURL, UnicodeError):
            url = httpx.URL(f"{base_url.rstrip('/')}/api/v1/")
            url.raw_host.decode().encode("idna")  # as it will be resolved
            is_http = url.scheme in ("http", "https") and url.host
            if is_http and not url.userinfo and _is_plain(url):
                return url
        if "@" in base_url:
            raise InvalidValue(
                "the base URL must be one such as https://host, without a name and a password in "
                "it: the token is given by itself"
            )
    raise InvalidValue(f"{brief(base_url)} is no base URL: write one such as https://host")


def _is_plain(url: httpx.URL) -> bool:
    """Return whether a path can be appended to a URL, and whether its port is valid."""
    is_port = url.port is None or 0 < url.port <= PORT_MAX
    return is_port and not url.query and not url.fragment


def _checked_token(token: object) -> str:
    """Return the token if it can be sent in a header. Raises InvalidValue, without the token, if
    not.
    """
    if isinstance(token, str) and _TOKEN.fullmatch(token):
        return token
    raise InvalidValue("the token must be visible ASCII characters, without blanks and line breaks")


def _problem(response: httpx.Response) -> dict[str, object]:
    """Return the problem details (RFC 9457) of a response, or {}."""
    with suppress(ValueError, RecursionError):  # regardless of its Content-Type
        if isinstance(body := response.json(), dict):
            return body
    return {}
