"""Check URLs as LangChain4j does, by the rules of `java.net.URI.create`.

The rules are RFC 2396 and RFC 2732 plus Java's "other" characters. Every check is one pass over the
text, so that a data URL of several megabytes is checked quickly.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from chatmemory.core.exceptions import InvalidMessage

_SHOWN = 200
_BROKEN_ESCAPE = r"%(?![0-9A-Fa-f]{2})"
# Control characters, blanks of any script, and the "unwise" characters of RFC 2396.
_NEVER = r"\x00-\x20\x7f-\xa0\"<>\\^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NOT_IN = {
    "path": re.compile(rf"[{_NEVER}\[\]?#]|{_BROKEN_ESCAPE}"),
    "authority": re.compile(rf"[{_NEVER}\[\]]|{_BROKEN_ESCAPE}"),
    "user info": re.compile(rf"[{_NEVER}\[\]@]|{_BROKEN_ESCAPE}"),
    "query": re.compile(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "fragment": re.compile(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "opaque part": re.compile(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "scheme name": re.compile(r"^[^A-Za-z]|[^A-Za-z0-9+.-]"),
}
_PARTS = re.compile(r"(?s)(?:([^:/?#]*):)?([^#]*)(?:#(.*))?")
_HIERARCHY = re.compile(r"(?s)(//)?((?<=//)[^/?]*)?([^?]*)(?:\?(.*))?")
_BRACKETED_HOST = re.compile(r"\[([^%\]]*)(?:%[0-9A-Za-z_.~-]+)?\](?::([0-9]{0,9}))?")


def check_uri(text: str) -> None:
    """Raise InvalidMessage for a URL that Java refuses.

    The text is Java's, with its index (in characters, from 0), except for an invalid authority.
    """
    found = _PARTS.fullmatch(text)
    assert found is not None  # the last part of the pattern matches any rest
    scheme, rest, fragment = found.groups()
    if scheme is not None:
        _check_scheme(text, scheme, rest)
    if scheme is None or rest.startswith("/"):
        _check_hierarchy(text, rest, found.start(2))
    else:
        _check(text, "opaque part", rest, found.start(2))
    if fragment is not None:
        _check(text, "fragment", fragment, found.start(3))


def _check_scheme(text: str, scheme: str, rest: str) -> None:
    if not scheme:
        raise _refusal("Expected scheme name", 0, text)
    _check(text, "scheme name", scheme, 0)
    if not rest:
        raise _refusal("Expected scheme-specific part", len(scheme) + 1, text)


def _check_hierarchy(text: str, rest: str, start: int) -> None:
    found = _HIERARCHY.fullmatch(rest)
    assert found is not None  # the last part of the pattern matches any rest
    slashes, authority, path, query = found.groups()
    if authority:
        _check_authority(text, authority, start + found.start(2))
    elif slashes and start + len(slashes) == len(text):
        raise _refusal("Expected authority", len(text), text)
    _check(text, "path", path, start + found.start(3))
    if query is not None:
        _check(text, "query", query, start + found.start(4))


def _check_authority(text: str, authority: str, start: int) -> None:
    """Check `user@[IPv6]:port`, or any name.

    Java accepts names that cannot be hosts, because RFC 2396 allows registry-based naming.
    """
    user, at, host = authority.rpartition("@")
    if not host.startswith("["):
        _check(text, "authority", authority, start)
        return
    _check(text, "user info", user, start)
    bracketed = _BRACKETED_HOST.fullmatch(host)
    try:
        IPv6Address(bracketed[1] if bracketed else "")
    except AddressValueError as error:
        where = start + len(user) + len(at)
        raise _refusal("Malformed IPv6 address", where, text) from error


def _check(text: str, part: str, value: str, start: int) -> None:
    found = _NOT_IN[part].search(value)
    if found:
        broken = found[0] == "%"
        what = "Malformed escape pair" if broken else f"Illegal character in {part}"
        raise _refusal(what, start + found.start(), text)


def _refusal(what: str, index: int, text: str) -> InvalidMessage:
    return InvalidMessage(f"{what} at index {index}: {text[:_SHOWN]}")
