"""Finds secrets in headers and query strings, and removes them from bytes.

These values are secrets:

- the credentials in Authorization, and cookies;
- the value of a header or parameter whose name contains a word such as key or token, as in
  `x-api-key`;
- in other headers, each word that looks like a key.

A secret has at least `LEAST` characters. These are not secrets: schemes such as "Bearer", names
such as `claude-3-5-sonnet-20241022`, and the placeholder keys of local servers.
"""

from __future__ import annotations

import json
import math
import operator
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from string import ascii_letters, digits
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote

from .patterns import declared_pattern

if TYPE_CHECKING:  # the proxy runs without chatmemory
    from chatmemory.messages.json_values import JsonDict

REMOVED = b"[removed]"
LEAST = 16  # characters of a secret
Headers = Iterable[tuple[bytes, bytes]]

_KEYS = {
    *("key", "apikey", "keys", "token", "secret", "password", "passwd", "pass", "auth", "pat"),
    *("authorization", "authentication", "credential", "credentials", "signature", "sig", "jwt"),
    *("bearer", "passphrase", "accesstoken", "authtoken", "subscription"),
}
# Ids, which programs also write into bodies, and headers whose values everybody knows
_IDS = {
    *("request", "requestid", "correlation", "session", "conversation", "thread", "turn", "trace"),
    *("traceparent", "tracestate", "traceid", "span", "parent", "b3", "ray", "idempotency"),
    *("organization", "organisation", "org", "project", "workspace", "account", "tenant"),
}
_PLAIN = {
    *(b"accept", b"accept-charset", b"accept-encoding", b"accept-language", b"anthropic-beta"),
    *(b"anthropic-version", b"cache-control", b"connection", b"content-encoding", b"content-type"),
    *(b"content-length", b"content-language", b"date", b"expect", b"host", b"keep-alive"),
    *(b"origin", b"pragma", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"openai-beta"),
    *(b"openai-version", b"x-ms-version"),
}
# Keys that local servers and examples ask for
_DUMMIES = {
    *("ollama", "empty", "none", "null", "dummy", "test", "local", "placeholder", "lm-studio"),
    *("not-needed", "not-required", "no-key", "no-key-required", "no-key-needed", "fake-key"),
    *("sk-no-key-required", "sk-not-needed", "sk-dummy", "sk-fake", "sk-local", "sk-1234"),
    *("sk-no-key-needed", "sk-not-required", "sk-1234567890", "token-abc123", "your-api-key"),
    *("your-api-key-here", "your_api_key", "your_api_key_here", "your_openai_api_key"),
    *("your_anthropic_api_key", "your_gemini_api_key", "sk-your-api-key", "your-openai-api-key"),
    *("dummy-api-key", "dummy_api_key", "fake-api-key", "fake_api_key", "test-api-key"),
    *("test_api_key", "no_api_key_required", "api-key-not-needed", "api-key-not-required"),
    *("this-is-a-dummy-key", "this-is-not-a-key", "not-a-real-key", "api-key-placeholder"),
}
_SCHEMES = {
    *("bearer", "basic", "token", "key", "apikey", "api-key", "digest", "negotiate", "hmac"),
    *("aws4-hmac-sha256", "googlelogin", "ssws", "dpop", "ntlm", "hawk", "jwt"),
}
_BETWEEN = declared_pattern(r"[-_.]")
_VERSION = declared_pattern(r"\A[A-Za-z.-]+/[\d.]+\w*")
_OTHERS = declared_pattern(r"[^A-Za-z0-9]")
_KINDS = str.maketrans(ascii_letters + digits, "a" * 26 + "A" * 26 + "0" * 10)
_WORDS = declared_pattern(r"[^\s,;\"'<>()\[\]{}=:&|]+")
_PARAMETER = declared_pattern(r'(?<![\w-])[\w-]++="?([^",\s]++)"?')
_ENTROPY = 2.7  # bits of a character
_CHANGES, _CHANGES_OF_LETTERS = 0.25, 0.4  # of letters, capitals and digits, of the length
_FEW = 16  # secrets that are looked for one by one
_BLOCK = 8
_FINGERPRINTS = 50  # secrets that are looked for in a text that was put together
_WORD = 20_000  # characters of a word in which they are looked for: a longer one is data
_SPACES = declared_pattern(r"(\s+)")
_SLICE = 2**14  # bytes that are cleaned at once, so that other connections are served in between


def secrets_of(headers: Headers, target: bytes = b"") -> Secrets:
    """Return the secrets of a request. `target` is its path with the query string."""
    found: set[bytes] = set()
    for name, text in headers:
        found.update(_known(name, text) if len(text) < _REMEMBERED else _in_header(name, text))
    query = target.partition(b"?")[2].decode("latin1")
    for parameter, value in parse_qsl(query, encoding="latin1") if query else ():
        if _is_key(parameter.lower()) and _is_secret(value):
            found.add(value.encode("latin1"))
    return secrets(found)


def secrets_of_answer(headers: Headers, known: Secrets) -> Secrets:
    """Return the `known` secrets of a request together with those of its answer: cookies and tokens
    in the answer's headers.
    """
    found: set[str] = set()
    for name, value in headers:
        if name.lower() == b"set-cookie":
            found.add(value.decode("latin1").partition(";")[0].partition("=")[2].strip(' "'))
        elif _is_key(name.lower().decode("latin1")):
            found.update(_credentials(value.decode("latin1").strip()))
    new = {each.encode("latin1") for each in found if _is_secret(each)}
    return secrets(known.values | new) if new else known


def _in_header(name: bytes, value: bytes) -> frozenset[bytes]:
    found = _of_request(name.lower(), value)
    return frozenset(each.encode("latin1") for each in found if _is_secret(each))


# Programs send the same headers with each request
_known = lru_cache(maxsize=512)(_in_header)
_REMEMBERED = 512  # bytes of a header


def _of_request(name: bytes, value: bytes) -> Iterator[str]:
    """Yield the values of a header that are secret if they are long enough."""
    text = value.decode("latin1").strip()
    parts = {*_BETWEEN.split(name.decode("latin1"))}
    if name == b"cookie":
        for pair in text.split(";"):
            yield pair.partition("=")[2].strip(' "')
    elif "idempotency" in parts or name in _PLAIN:
        return
    elif _is_key(name.decode("latin1")):
        yield from _credentials(text)
    elif not parts & _IDS:
        yield from (word for each in _WORDS.findall(text) for word in _keys_in(each))


@lru_cache(maxsize=512)
def _is_key(name: str) -> bool:
    """Return whether a header or a parameter is named like a key: X-Api-Key, access_token."""
    parts = {*_BETWEEN.split(name)}
    return bool(parts & _KEYS) and "idempotency" not in parts


def _credentials(text: str) -> Iterator[str]:
    """Yield the credentials after a scheme such as "Bearer". Of a list of parameters, yield also
    the values that look like keys.
    """
    scheme, _, rest = text.partition(" ")
    value = rest.strip() if rest and scheme.lower() in _SCHEMES else text
    yield value
    if "=" in value:
        yield from (each for each in _PARAMETER.findall(value) if looks_like_key(each))


def _keys_in(word: str) -> Iterator[str]:
    """Yield a word that looks like a key, or those of its parts between slashes that do. A slash
    can be part of a key, or separate a program from its version.
    """
    if looks_like_key(word) and not _VERSION.fullmatch(word):
        yield word
    elif "/" in word:
        yield from filter(looks_like_key, word.split("/"))


def looks_like_key(text: str) -> bool:
    """Return whether a text looks random like a key: long, with frequent changes between lower
    case, upper case and digits.

    `3f2a…` and `sk-proj-x8Gq…` look like keys, `claude-3-5-sonnet-20241022` does not.
    """
    plain = _OTHERS.sub("", text)
    if len(plain) < LEAST or plain.isdecimal():
        return False
    kinds = plain.translate(_KINDS)
    changes = sum(map(operator.ne, kinds, kinds[1:]))
    least = _CHANGES if "0" in kinds else _CHANGES_OF_LETTERS
    sizes = Counter(plain).values()
    entropy = -sum(n / len(plain) * math.log2(n / len(plain)) for n in sizes)
    return changes >= least * len(plain) and entropy >= _ENTROPY


def _is_secret(text: str) -> bool:
    return len(text) >= LEAST and text.lower() not in _DUMMIES and len({*text}) > 2


class Secrets:
    """A set of secrets, each also in the spellings of JSON and URLs."""

    def __init__(self, values: frozenset[bytes]) -> None:
        self.values = values
        spelled = {each for value in values for each in _spellings(value)}
        self._all = sorted(spelled, key=len, reverse=True)
        self.longest = len(self._all[0]) if spelled else 1
        self._blocks = _blocks(self._all) if len(spelled) > _FEW else None

    def __bool__(self) -> bool:
        return bool(self.values)

    def possible_in(self, data: bytes) -> list[bytes]:
        """Return the spellings of secrets that may occur in these bytes, the longest first. A
        returned spelling need not occur.
        """
        if self._blocks is None:
            return self._all
        size = len(data) - len(data) % _BLOCK
        blocks = memoryview(data)[:size].cast("Q")
        numbers = {n for block in self._blocks.keys() & {*blocks} for n in self._blocks[block]}
        return [self._all[n] for n in sorted(numbers)]

    def removed_from(self, text: str) -> str:
        """Return a text with `[removed]` in place of these secrets."""
        if not self:
            return text
        data = text.encode("utf-8", "surrogateescape")
        for secret in self.possible_in(data):
            data = data.replace(secret, REMOVED)
        return data.decode("utf-8", "surrogateescape")


def secrets(values: Iterable[bytes]) -> Secrets:
    found = frozenset(values)
    return _made(found) if sum(map(len, found)) < _REMEMBERED else Secrets(found)


_made = lru_cache(maxsize=64)(Secrets)


class Cleaner:
    """Removes secrets from a stream of bytes. `removed` is the number of removals."""

    def __init__(self, secrets: Secrets) -> None:
        self.secrets, self.removed = secrets, 0
        self._pending = b""

    def clean(self, data: bytes, is_last: bool = False) -> bytes:
        """Add bytes to the stream, and return the bytes that are ready, without secrets.

        The last bytes are held back until the next `clean`, because a secret may begin in these
        bytes. With `is_last`, nothing is held back.
        """
        if not self.secrets:
            return data
        found = [self._clean(data[n : n + _SLICE]) for n in range(0, len(data), _SLICE)]
        if is_last:
            found.append(self._pending)
            self._pending = b""
        return b"".join(found)

    def _clean(self, data: bytes) -> bytes:
        data = self._pending + data
        for secret in self.secrets.possible_in(data):
            if secret in data:
                first, *others = data.split(secret)
                self.removed += len(others)
                data = REMOVED.join([first, *others])
        end = max(0, len(data) - self.secrets.longest + 1)
        self._pending = data[end:]
        return data[:end]


class Fingerprints:
    """Lengths and salted digests of at most 50 secrets of a request. They are stored with the
    recorded call, because the secrets themselves must not be stored.

    In a streamed answer, a secret can be divided between two events. It is only found when the text
    of the events is joined. The fingerprints then find and remove it.
    """

    def __init__(self, salt: str, digests: Mapping[str, Sequence[str]]) -> None:
        self._salt = salt.encode()
        self._digests = {int(size): {*some} for size, some in digests.items()}

    @classmethod
    def of(cls, secrets: Secrets) -> Fingerprints:
        found = cls(os.urandom(16).hex(), {})
        for value in sorted(secrets.values, key=len)[:_FINGERPRINTS]:
            found._digests.setdefault(len(value), set()).add(found._digest(value))
        return found

    def as_json(self) -> JsonDict:
        digests = {str(size): sorted(some) for size, some in self._digests.items()}
        return {"salt": self._salt.decode(), "digests": digests}

    def removed_from(self, text: str) -> tuple[str, int]:
        """Return a text with `[removed]` in place of the secrets that have these fingerprints.
        Return also the number of removals.
        """
        places = 0
        for size in sorted(self._digests, reverse=True):
            words = _SPACES.split(text)
            for n, word in enumerate(words):
                if size <= len(word) < _WORD:
                    words[n], count = self._cleaned(word, size)
                    places += count
            text = "".join(words)
        return text, places

    def _cleaned(self, word: str, size: int) -> tuple[str, int]:
        """Remove the secrets of `size` characters from a word. Return the word, and the number of
        removals.
        """
        n = count = 0
        while n <= len(word) - size:
            if self._digest(word[n : n + size].encode("latin1", "replace")) in self._digests[size]:
                word = f"{word[:n]}{REMOVED.decode()}{word[n + size :]}"
                n, count = n + len(REMOVED), count + 1
            else:
                n += 1
        return word, count

    def _digest(self, value: bytes) -> str:
        return sha256(self._salt + value).hexdigest()[:32]


def _blocks(secrets: Iterable[bytes]) -> dict[int, set[int]]:
    """Return the first block of each secret at each offset, with the indexes of the secrets that
    have this block.
    """
    found: dict[int, set[int]] = {}
    for n, secret in enumerate(secrets):
        for offset in range(_BLOCK):
            block = memoryview(secret)[offset : offset + _BLOCK].cast("Q")[0]
            found.setdefault(block, set()).add(n)
    return found


def _spellings(secret: bytes) -> set[bytes]:
    """Return a secret as it is, and as JSON and URLs spell it."""
    text = secret.decode("latin1")
    inside = json.dumps(text)[1:-1]
    found = {inside, inside.replace("/", "\\/"), quote(secret, safe="")}
    found |= {inside.replace("+", escape) for escape in ("\\u002b", "\\u002B")}
    found.add(json.dumps(secret.decode("utf-8", "replace"))[1:-1])
    return {secret, *(each.encode("latin1") for each in found)}
