"""A provider on this machine, and a recorder in front of it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from inspector.rooms.calls.models import ModelCall
from inspector.rooms.recorder.proxy.headers import Upstream
from inspector.rooms.recorder.proxy.server import Proxy
from inspector.rooms.recorder.storing import Storing

from ...waiting import until

CHAT = "/v1/chat/completions"
ANSWER = {
    "id": "chatcmpl-1",
    "model": "gpt-4o-2024-08-06",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hallo"},
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}


@dataclass
class Got:
    """A request as the provider got it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = (value for each, value in self.headers if each.lower() == name)
        return next(found, None)


Answer = Callable[[BaseHTTPRequestHandler, Got], None]


@dataclass
class Provider:
    """A server that answers with `answer`, and keeps the requests."""

    url: str
    got: list[Got] = field(default_factory=list)
    answer: Answer | None = None
    left: threading.Event = field(default_factory=threading.Event)


def answer_json(handler, value: object, status: int = 200, **headers: str) -> None:
    answer_text(handler, json.dumps(value, ensure_ascii=False), status, **headers)


def answer_text(handler, text: str, status: int = 200, **headers: str) -> None:
    body = text.encode()
    if headers.get("Content_Encoding") == "gzip":
        body = gzip.compress(body)
    handler.send_response(status)
    headers = {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}
    for name, each in headers.items():
        handler.send_header(name.replace("_", "-"), each)
    handler.end_headers()
    handler.wfile.write(body)


def chunk(handler, data: bytes) -> None:
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    handler.wfile.flush()


@contextmanager
def provider() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got = Got(self.command, self.path, list(self.headers.items()), body)
            made.got.append(got)
            try:
                made.answer(self, got)
            except ConnectionError:
                made.left.set()
                self.close_connection = True

        do_GET = do_POST  # noqa: N815  (the name that the server looks for)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def recorder(spool: Path, upstream: str) -> Iterator[str]:
    """Yield the URL of a proxy that runs in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    proxy = Proxy(spool, Upstream.at(upstream))
    thread = threading.Thread(target=proxy.serve, args=(listening,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.stop()
        thread.join(10)
        assert not thread.is_alive()


def ended(folder: Path) -> list[Path]:
    """Return the files of the calls, once all have ended. There may be files for the next calls."""

    def has_ended() -> bool:
        with suppress(FileNotFoundError):  # it was renamed meanwhile
            return not any(map(has_begun, folder.glob("*.part")))
        return False

    # A file that is being renamed may be missing from a list
    until(lambda: has_ended() and has_ended())
    return sorted(folder.glob("*.call"))


def has_begun(file: Path) -> bool:
    """Return whether a file has a first frame. Until then, all of its bytes are zeros."""
    with file.open("rb") as opened:
        return any(opened.read(8))


def store_all(folder: Path) -> list[ModelCall]:
    """Store all calls of a spool, Return the stored ones."""
    ended(folder)
    assert Storing(folder).store_waiting()
    assert list(folder.glob("*.call")) == []
    return list(ModelCall.objects.order_by("at", "n"))
