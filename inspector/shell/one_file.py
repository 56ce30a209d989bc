"""HTML files that work from disk. They contain their styles and scripts, and contact no server.

Their Content-Security-Policy allows only these styles and scripts, by digest.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from django.contrib.staticfiles import finders
from django.utils.safestring import SafeString, mark_safe


def inlined(styles: Sequence[str], script: str) -> dict[str, SafeString]:
    """Return variables for the template of an HTML file that works from disk: the texts `style` and
    `script`, and the Content-Security-Policy as `policy`. The arguments are names of static files.
    """
    style, code = "".join(map(static_text, styles)), static_text(script)
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(code)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    texts = {"style": style, "script": code, "policy": policy}
    return {name: mark_safe(text) for name, text in texts.items()}  # noqa: S308  (our own files)


def static_text(name: str) -> str:
    """Return the text of a static file of the package."""
    path = finders.find(name)
    assert isinstance(path, str), f"{name} is a file of the package"
    return Path(path).read_text("utf-8")


def write_new(path: Path, text: str) -> None:
    """Write a new file that only its owner may read. Raises OSError, also if the file exists
    already.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
