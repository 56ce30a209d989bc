"""The server of `make run`."""

from __future__ import annotations

import socket

from inspector.project.management.commands.serve import _listen


def test_responses_do_not_wait_for_acknowledgements():
    with _listen(0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
