"""deploy/nginx.conf in front of a real server: slow and many clients do not reach it."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from ..serving import ROOT, Served, free_port

MISSING = [
    name for name in ("nginx", "openssl") if not shutil.which(name, path=os.defpath + ":/usr/sbin")
]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed")
SECONDS = 20
MAIN = """
daemon off;
pid {folder}/pid;
error_log stderr;
{user}
events {{ worker_connections 256; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@dataclass
class Proxy:
    """nginx with TLS at `port`, plain HTTP at `plain_port`, and the server behind it."""

    port: int
    plain_port: int
    certificate: Path
    served: Served

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False  # the environment may name other certificates
        session.verify = str(self.certificate)
        session.headers["Authorization"] = f"Bearer {self.served.token}"
        return session

    @contextmanager
    def connection(self) -> Iterator[ssl.SSLSocket]:
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        with (
            socket.create_connection(("127.0.0.1", self.port), SECONDS) as plain,
            trusted.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            yield connection


@contextmanager
def proxying(served: Served, folder: Path) -> Iterator[Proxy]:
    """nginx in front of a server."""
    proxy = Proxy(free_port(), free_port(), folder / "certificate.pem", served)
    make_certificate(proxy.certificate, folder / "key.pem")
    (folder / "site.conf").write_text(site_for(proxy, folder))
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    command = [shutil.which("nginx", path=os.defpath + ":/usr/sbin"), "-e", "stderr"]
    process = subprocess.Popen([*command, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        while process.poll() is None:
            with suppress(ConnectionError):
                socket.create_connection(("127.0.0.1", proxy.port)).close()
                break
        assert process.returncode is None, "nginx did not start"
        yield proxy
    finally:
        process.terminate()
        process.wait(SECONDS)


def site_for(proxy: Proxy, folder: Path) -> str:
    """The shipped file with the addresses of this test, a short timeout and few streams."""
    site = (ROOT / "deploy" / "nginx.conf").read_text()
    for shipped, here in {
        "127.0.0.1:8000": f"127.0.0.1:{proxy.served.port}",
        "listen 80;": f"listen 127.0.0.1:{proxy.plain_port};",
        "listen 443 ": f"listen 127.0.0.1:{proxy.port} ",
        "memory.example.org;": "127.0.0.1;",
        "/var/log/nginx/chatmemory.log": str(folder / "access.log"),
        "/etc/ssl/certs/memory.example.org.pem": str(proxy.certificate),
        "/etc/ssl/private/memory.example.org.key": str(folder / "key.pem"),
        "client_header_timeout 10s": "client_header_timeout 1s",
        "client_body_timeout 10s": "client_body_timeout 1s",
        "chatmemory_streams 50": "chatmemory_streams 2",
    }.items():
        assert shipped in site, shipped
        site = site.replace(shipped, here)
    return site


def make_certificate(certificate: Path, key: Path) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    options = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *options, *files], check=True, capture_output=True)


@pytest.fixture(scope="module")
def proxy(shared_server, tmp_path_factory) -> Iterator[Proxy]:
    with proxying(shared_server, tmp_path_factory.mktemp("nginx")) as proxy:
        yield proxy


def test_requests_reach_the_server_and_the_log_has_no_words_of_users(proxy):
    url, session = f"{proxy.url}/api/v1/memories/", proxy.session()
    policy = {"kind": "message_window", "max_messages": 3}
    made = session.post(url, json={"id": "proxied", "policy": policy})
    assert made.status_code == 201
    assert made.headers["Location"] == f"{proxy.url}/api/v1/memories/proxied/"
    session.headers["Referer"] = f"{proxy.url}/?q=QUOKKA"
    for _ in range(2):  # the line of the first is written before the second
        session.get(f"{url}?search=QUOKKA")
    lines = (proxy.certificate.parent / "access.log").read_text()
    assert "GET /api/v1/memories/ 200" in lines
    assert "QUOKKA" not in lines


@pytest.mark.parametrize(
    ("method", "path", "kilobytes"),
    [
        ("POST", "/sign-in/", 64),
        ("POST", "/learn/playground/", 64),
        ("POST", "/policies/", 256),
        ("POST", "/c/m/simulate/", 2 * 1024),
        ("POST", "/import/", 16 * 1024 + 256),
        ("POST", "/api/v1/memories/", 2 * 1024),
        ("PUT", "/api/v1/store/m/", 4 * 1024),
        ("PUT", "/api/v1/memories/m/messages/", 4 * 1024),
    ],
)
def test_a_body_of_a_class_is_refused_by_its_length(proxy, method, path, kilobytes):
    """A body exactly at the limit reaches the server, which explains what is wrong with it."""
    answers = []
    for size in (kilobytes * 1024, kilobytes * 1024 + 1):
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        with proxy.connection() as connection:
            connection.sendall(
                f"{head}Connection: close\r\nContent-Length: {size}\r\n\r\n".encode()
            )
            with suppress(ConnectionError):
                connection.sendall(b" " * size * (size == kilobytes * 1024))
            answers.append(b"")
            while b"</html>" not in answers[-1] and (received := connection.recv(10_000)):
                answers[-1] += received
    server, refused = answers
    assert refused.startswith(b"HTTP/1.1 413 ")
    assert b"nginx" in refused.partition(b"\r\n\r\n")[2]
    assert b"nginx" not in server.partition(b"\r\n\r\n")[2]


HALF_A_BODY = b"POST /import/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\n"


def test_who_sends_slowly_is_cut_off(proxy):
    starts = (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", HALF_A_BODY + b"slow", b"")
    with ExitStack() as opened:
        slow = [opened.enter_context(proxy.connection()) for _ in starts]
        for connection, start in zip(slow, starts, strict=True):
            connection.sendall(start)
        for connection in slow:
            answer = b""
            while received := connection.recv(1000):  # until it is closed
                answer += received
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


@pytest.mark.long
def test_a_body_that_drips_reaches_the_server_which_cuts_it_off(proxy):
    """The server gives a body 20 seconds; nginx would wait as long as something arrives."""
    with proxy.connection() as connection:
        connection.sendall(HALF_A_BODY)
        connection.settimeout(0.3)
        answer = b""
        for _ in range(200):
            with suppress(TimeoutError):
                answer += connection.recv(1000)
                break
            connection.sendall(b"x")
    assert answer.startswith(b"HTTP/1.1 408")


def test_streams_are_not_held_back_and_an_address_has_a_few(proxy):
    proxy.served.create("streamed")
    url = f"{proxy.url}/c/streamed/live/"
    with ExitStack() as opened:
        streams = [
            opened.enter_context(proxy.session().get(url, stream=True, timeout=SECONDS))
            for _ in range(2)
        ]
        assert proxy.session().get(url, timeout=SECONDS).status_code == 429
        assert proxy.session().get(f"{proxy.url}/readyz").status_code == 200
        proxy.served.say("streamed", "hello")
        for stream in streams:
            lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
            assert next(line for line in lines if line.startswith("id: ")) == "id: 1"


def test_plain_http_is_sent_to_https_and_nobody_pretends_to_be_local(proxy):
    """A sign-in link and metrics are for the local machine, and not for clients of a proxy."""
    plain = f"http://127.0.0.1:{proxy.plain_port}/c/m/?at=3"
    answer = requests.get(plain, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (308, "https://127.0.0.1/c/m/?at=3")
    headers = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    assert proxy.session().get(f"{proxy.url}/metrics", headers=headers).status_code == 401
    link = proxy.served.sign_in_link().replace(proxy.served.url, proxy.url)
    stranger = proxy.session()
    stranger.get(link, headers=headers)
    assert "sessionid" not in stranger.cookies


@pytest.mark.own_server(CHATMEMORY_FORM_RATE="3/day")
def test_a_stranger_who_keeps_posting_must_wait(served, tmp_path):
    with proxying(served, tmp_path) as proxy:
        stranger = proxy.session()
        del stranger.headers["Authorization"]
        forms = [stranger.post(f"{proxy.url}/theme/", {"theme": "a"}) for _ in range(4)]
        assert [each.status_code == 429 for each in forms] == [False, False, False, True]
        statuses = []  # of bodies that nginx refuses
        while 429 not in statuses and len(statuses) < 200:
            for path, size in (("/sign-in/", 64), ("/api/v1/memories/", 2048)):
                answer = stranger.post(proxy.url + path, data=b" " * (size * 1024 + 1))
                statuses.append(answer.status_code)
        assert set(statuses) == {413, 429}
        assert len(statuses) > 100
        assert answer.headers["Retry-After"] == "60"
        assert stranger.get(f"{proxy.url}/sign-in/").status_code == 200
