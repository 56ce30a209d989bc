"""Serves styles and scripts. `collectstatic` stores each file compressed, under a name with a hash
of its content, so that browsers may cache it forever.

At its start, the server compares the collected files with those of the installed version. If they
differ, or nothing is collected, the installed files are served under their own names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import brotli
from asgiref.sync import sync_to_async
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.files.base import ContentFile
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from servestatic.compress import Compressor
from servestatic.middleware import ServeStaticMiddleware
from servestatic.storage import CompressedManifestStaticFilesStorage

from chatmemory.patterns import declared_pattern

_PACKED = declared_pattern(r"\.(gz|br|zstd)$")
_HASHED = declared_pattern(r"\.[0-9a-f]{12}(\.[^./]+)?(\.gz|\.br|\.zstd)?$")
# Django's own pattern would also read comments of other packages as imports.
_IMPORT = (
    r"""(?m)(?P<matched>^import (?P<names>\{[^}]*\}) from "(?P<url>\.[^"]*)";)""",
    """import %(names)s from "%(url)s";""",
)
_SOURCES = "sources"  # the name in the manifest
# Brotli's best level saves a twelfth of a file, and takes seconds for one of a megabyte: three
# quarters of the first start of a container. No file of ours is that large.
_BEST_UP_TO = 65_536  # bytes


class BoundedCompressor(Compressor):  # type: ignore[misc]  # the library has no types
    """Compresses static files with Brotli: small files at its best level. Large files are
    compressed at a lower level, which is almost as good and takes a tenth of the time.
    """

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=11 if len(data) <= _BEST_UP_TO else 9))


class CollectedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the library has no types
    """The collected files of this version and of the version before. Pages that were opened before
    an update may still need the older files.

    A file with a hash in its name is never written again, because a server may be sending it.
    """

    patterns = (
        *CompressedManifestStaticFilesStorage.patterns,
        *((modules, (_IMPORT,)) for modules in ("inspector/*.js", "rooms/*.js")),
    )
    keep_only_hashed_files = True

    @cached_property
    def is_current(self) -> bool:
        """Whether the collected files belong to the installed version."""
        content = self.read_manifest()
        return content is not None and json.loads(content).get(_SOURCES) == _digest_of_sources()

    def stored_name(self, name: str) -> str:
        return str(super().stored_name(name)) if self.is_current else name

    def post_process(self, *args: object, **options: object) -> Iterator[object]:
        before = {*self.hashed_files.values()}
        yield from super().post_process(*args, **options)
        if not options.get("dry_run"):
            self._remove_all_but(before | {*self.hashed_files.values()})

    def add_stats_to_manifest(self) -> None:
        """Store in the manifest one SHA-256 digest of the names and contents of all installed
        static files. `is_current` needs this digest. The library's own method would store sizes and
        times of files instead.
        """
        manifest = json.loads(self.read_manifest()) | {_SOURCES: _digest_of_sources()}
        self.manifest_storage.delete(self.manifest_name)
        self.manifest_storage.save(self.manifest_name, ContentFile(json.dumps(manifest).encode()))

    def delete(self, name: str) -> None:
        if not _HASHED.search(name):
            super().delete(name)

    def compress_files(self, paths: set[str]) -> Iterator[tuple[str, str]]:
        """Compress the files that are not compressed yet, and yield each file's name with the name
        of its compressed copy.

        Source maps of other packages are left out: compressing them would take most of the time,
        and only debuggers request them.
        """
        new = {each for each in paths if not self.exists(f"{each}.gz")}
        yield from super().compress_files({each for each in new if not each.endswith(".map")})

    def create_compressor(self, **options: object) -> BoundedCompressor:
        return BoundedCompressor(**options)

    def _save(self, name: str, content: object) -> str:
        is_there = _HASHED.search(name) and self.exists(name)
        return name if is_there else str(super()._save(name, content))

    def _remove_all_but(self, kept: set[str]) -> None:
        root = Path(self.location)
        for file in root.rglob("*"):
            name = str(file.relative_to(root))
            if _HASHED.search(name) and _PACKED.sub("", name) not in kept:
                file.unlink()


class StaticFiles(ServeStaticMiddleware):  # type: ignore[misc]  # the library has no types
    """Middleware that serves the collected files if they belong to this version, else the installed
    files.
    """

    def add_files_from_manifest(self) -> None:
        if staticfiles_storage.is_current:  # type: ignore[attr-defined]  # of our own storage
            self.add_files(self.static_root, prefix=self.static_prefix)
        else:
            self.add_files_from_finders()

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Respond to a request, also for files that were collected after this process started.
        During a reload, an old process may get requests for the files of a page that a new process
        rendered.
        """
        path = request.path_info
        is_new = path.startswith(self.static_prefix) and path not in self.files
        if is_new and _HASHED.search(path):
            found = await sync_to_async(self.find_file)(path)
            self.files |= {path: found} if found else {}
        return await super().__call__(request)  # type: ignore[no-any-return]  # the library has no types


def _digest_of_sources() -> str:
    """Return a digest of the names and contents of all files that collectstatic would collect."""
    digest = hashlib.sha256()
    found = ((name, storage) for each in finders.get_finders() for name, storage in each.list([]))
    for name, storage in sorted(found, key=lambda pair: str(pair[0])):
        content = Path(storage.path(name)).read_bytes()
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()
