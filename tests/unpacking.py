"""Archives of tests, unpacked by every Python that is supported."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar file of ours.

    The argument `filter` came with Python 3.11.4; Debian 12 has 3.11.2.
    """
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)
