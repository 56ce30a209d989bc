"""Starts the proxy on a listening socket, once a byte comes on the standard input."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from pathlib import Path

from .headers import Upstream
from .server import Proxy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--heir", type=Path, required=True)
    parser.add_argument("--upstream", type=Upstream.at)
    options = parser.parse_args()
    logging.basicConfig(format="recorder: %(message)s")
    if not os.read(sys.stdin.fileno(), 1):  # the parent has ended before this proxy was needed
        return
    listening = socket.socket(fileno=options.fd)
    listening.setblocking(False)
    asyncio.run(Proxy(options.spool, options.upstream).serve(listening, options.heir))


main()
