"""Starts a proxy that waits. When the parent process sends a byte to the standard input, the proxy
begins to answer requests.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from .handover import ANSWERING, HandOver
from .headers import Upstream
from .server import Proxy

SWITCH_SECONDS = 0.0005  # after which another connection's thread has its turn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--heir", type=Path, required=True)
    parser.add_argument("--before", type=int, help="where the proxy before this one listens")
    parser.add_argument("--upstream", type=Upstream.at)
    options = parser.parse_args()
    logging.basicConfig(format="recorder: %(message)s")
    sys.setswitchinterval(SWITCH_SECONDS)
    parent = sys.stdin.fileno()
    if not os.read(parent, 1):  # the parent has ended before this proxy was needed
        return
    gc.freeze()  # modules stay, and need not be searched for what can be freed
    proxy = Proxy(options.spool, options.upstream)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: proxy.stop())
    if options.before is not None:
        with suppress(OSError):
            os.write(options.before, ANSWERING)
            os.close(options.before)
    listening = socket.socket(fileno=options.fd)
    proxy.serve(listening, HandOver(listening, parent, options.heir))


main()
