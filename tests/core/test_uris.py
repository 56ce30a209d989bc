"""The verdicts are those of java.net.URI.create, OpenJDK 17."""

from __future__ import annotations

import re

import pytest

from chatmemory import InvalidMessage
from chatmemory.core.contents import check_uri


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#",
        "é",
        "a:b",
        "/a?b[c]#d[e]",
        "http:///a",
        "http://a_b/",
        "http://u:p@[::1]:80/x",
        "http://[fe80::1%eth0]/",
        "http://h:99999999999/",
        "s3://bucket/key%20x",
        "mailto:a[b]",
        "data:image/png;base64," + "A" * 1_000_000,
    ],
    ids=lambda text: text[:30],
)
def test_it_accepts(text):
    check_uri(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not a uri", "Illegal character in path at index 3: not a uri"),
        ("a[b", "Illegal character in path at index 1: a[b"),
        ("/a?b c", "Illegal character in query at index 4: /a?b c"),
        ("#a#b", "Illegal character in fragment at index 2: #a#b"),
        ("a:b c", "Illegal character in opaque part at index 3: a:b c"),
        ("a_b:c", "Illegal character in scheme name at index 1: a_b:c"),
        ("1a:b", "Illegal character in scheme name at index 0: 1a:b"),
        (":a", "Expected scheme name at index 0: :a"),
        ("http:", "Expected scheme-specific part at index 5: http:"),
        ("http://", "Expected authority at index 7: http://"),
        ("http://x[y]/", "Illegal character in authority at index 8: http://x[y]/"),
        ("http://[zz]/", "Malformed IPv6 address at index 7: http://[zz]/"),
        ("http://[::1", "Malformed IPv6 address at index 7: http://[::1"),
        ("http://[::1]:x/", "Malformed IPv6 address at index 7: http://[::1]:x/"),
        ("a%2", "Malformed escape pair at index 1: a%2"),
        ("\u3000", "Illegal character in path at index 0: \u3000"),
    ],
)
def test_it_refuses(text, complaint):
    with pytest.raises(InvalidMessage, match=f"^{re.escape(complaint)}$"):
        check_uri(text)
