"""Styles and scripts: hashed, compressed, and whole through upgrades."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import brotli
import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.templatetags.static import static
from django.test import Client

from inspector.templatetags import inspector

from ..serving import ROOT

RED, BLUE, GREEN = (f"a {{ color: {each} }} ".encode() * 50 for each in ("red", "blue", "green"))


class Site:
    """A site with one style, whose versions are installed one after the other."""

    def __init__(self, settings, folder: Path) -> None:
        self.settings, self.root, self.style = settings, folder / "static", folder / "a" / "x.css"
        htmx = self.style.parent / "django_htmx" / "htmx-2.min.js"  # of the page of a 404
        htmx.parent.mkdir(parents=True)
        htmx.touch()
        settings.MIDDLEWARE = ["inspector.project.static_files.StaticFiles", *settings.MIDDLEWARE]
        settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
        settings.STATICFILES_DIRS = [self.style.parent, ROOT / "static"]

    def install(self, style: bytes) -> None:
        self.style.write_bytes(style)

    def collect(self) -> None:
        self.start()
        call_command("collectstatic", "--no-input", verbosity=0)

    def start(self) -> Client:
        """A client of a process that has just started."""
        self.settings.STATIC_ROOT = str(self.root)  # makes the storage anew
        client = Client()
        client.get("/healthz")
        return client

    def files(self) -> dict[str, int]:
        return {each.name: each.stat().st_mtime_ns for each in self.root.rglob("x.*")}


@pytest.fixture
def site(settings, tmp_path) -> Site:
    return Site(settings, tmp_path)


def content(client: Client, url: str) -> bytes | None:
    answer = client.get(url)
    return b"".join(answer) if answer.status_code == 200 else None


def test_a_collected_file_is_hashed_compressed_and_kept_for_good(site):
    site.install(RED)
    site.collect()
    client, url = site.start(), static("x.css")
    assert url.startswith("/static/x.")
    assert url != "/static/x.css"
    answer = client.get(url, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(b"".join(answer)) == RED
    assert "immutable" in answer["Cache-Control"]
    assert "/static/x.css" not in site.files()


def test_a_source_map_is_collected_but_not_compressed(site):
    site.install(RED)
    (site.style.parent / "x.map").write_bytes(RED)
    site.collect()
    kinds = {Path(name).suffix for name in site.files() if ".map" in name}
    assert kinds == {".map"}
    assert any(name.endswith(".css.gz") for name in site.files())


def test_only_small_files_are_compressed_as_far_as_brotli_can(site):
    """For a file of a megabyte that takes seconds of each start on a new machine."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    words = b"".join(each.read_bytes() for each in pages)[:70_000]
    site.install(words)
    (site.style.parent / "small.css").write_bytes(words[:60_000])
    site.collect()
    (large,), (small,) = (site.root.glob(f"{each}.*.css.br") for each in ("x", "small"))
    assert small.read_bytes() == brotli.compress(words[:60_000])
    assert brotli.decompress(large.read_bytes()) == words
    assert len(brotli.compress(words)) < large.stat().st_size < len(words) / 2


def test_an_upgrade_without_collectstatic_serves_the_new_files(site):
    site.install(RED)
    assert content(site.start(), static("x.css")) == RED  # nothing was collected yet
    site.collect()
    site.install(BLUE)
    assert content(site.start(), static("x.css")) == BLUE


def test_pages_of_the_version_before_find_their_files_until_the_next(site):
    urls, processes = [], []
    for style in (RED, BLUE, GREEN):
        site.install(style)
        site.collect()
        processes.append(site.start())
        urls.append(static("x.css"))
    assert [content(processes[2], url) for url in urls] == [None, BLUE, GREEN]
    assert content(processes[0], urls[2]) == GREEN  # an old process, which started before


def test_what_a_server_may_be_sending_is_not_written_again(site):
    site.install(RED)
    site.collect()
    before = site.files()
    assert len(before) == 3  # the file, its gzip and its Brotli
    site.collect()
    assert site.files() == before


def test_modules_import_one_another_by_their_hashes(site):
    """Those of other packages are left out: to compress them takes most of the time, and the wheel
    in its container (test_container.py) collects them too.
    """
    site.install(RED)
    site.collect()
    site.start()
    scripts = [*(site.root / "inspector").rglob("*.js"), *(site.root / "rooms").rglob("*.js")]
    imports = [
        line for each in scripts for line in each.read_text().splitlines() if " from " in line
    ]
    names = {
        Path(line.rpartition("/")[2].rstrip('";')).name for line in imports if "import" in line
    }
    assert len(names) > 10
    assert names <= {each.name for each in scripts}
    assert staticfiles_storage.is_current


@pytest.fixture
def _drawn_anew():
    """Forget the drawn icons and parts of pages, because their links lead to another file now."""
    drawn = (inspector.icon, inspector.shape, inspector.mark, inspector.drawn_once)
    for tag in drawn:
        tag.cache_clear()
    yield
    for tag in drawn:
        tag.cache_clear()


@pytest.mark.usefixtures("_drawn_anew")
def test_the_storage_of_another_project_hashes_them_too(db, tmp_path, settings):
    backend = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": backend}}
    settings.STATIC_ROOT = str(tmp_path)
    call_command("collectstatic", "--no-input", verbosity=0)
    page = Client().get("/sign-in/").text
    linked = re.findall(r'(?:href|src)="/static/([^"#]+)', page)
    assert len(linked) > 5
    assert all(re.search(r"\.[0-9a-f]{12}\.", each) for each in linked), linked
    assert all((tmp_path / each).exists() for each in linked)
