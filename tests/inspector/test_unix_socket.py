"""Who is at the other end of a unix socket is what the proxy adds."""

from __future__ import annotations

import asyncio

import pytest

from inspector.project.worker import behind_unix_socket

TRUSTED = ["127.0.0.1", "10.0.0.0/8"]


def client_told_by(*forwarded: str) -> object:
    seen = []

    async def application(scope, receive, send):
        seen.append((scope["client"], scope["scheme"]))

    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    headers.append((b"x-forwarded-proto", b"https"))
    scope = {"type": "http", "client": None, "scheme": "http", "headers": headers}
    asyncio.run(behind_unix_socket(application, TRUSTED)(scope, None, None))
    ((client, scheme),) = seen
    assert scheme == "https"
    return client and client[0]


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (["203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5, 203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5", "203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5, 203.0.113.7, 10.1.2.3"], "203.0.113.7"),
        (["unix:, 203.0.113.7"], "203.0.113.7"),
        ([], None),
    ],
)
def test_the_client_is_the_last_that_no_proxy_of_ours_is(forwarded, client):
    assert client_told_by(*forwarded) == client
