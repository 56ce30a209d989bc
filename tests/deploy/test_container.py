"""The container: its steps in a clean folder, as no Docker runs here, and what its files name."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import yaml

from ..artifact.conftest import copied
from ..serving import ROOT, database, free_port
from ..waiting import SECONDS, until
from .test_monitors import probes

DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.own_server
def test_the_installed_wheel_starts_as_in_the_container(installed, template, tmp_path):
    """What deploy/start does, with nothing of the checkout but the two files that are copied."""
    app, var, port = tmp_path / "app", tmp_path / "var", free_port()
    for name in re.search(r"^COPY (deploy/.+) /app/deploy/$", DOCKERFILE, re.M)[1].split():
        (app / "deploy").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, app / "deploy")
    (app / "bin").mkdir()
    for name, module in {"chatmemory": "inspector", "gunicorn": "gunicorn"}.items():
        program = app / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        program.chmod(0o755)
    with database(tmp_path, copy_of=template.url) as url:
        environment = {
            "PATH": f"{app}/bin:{os.defpath}",
            "PYTHONPATH": str(installed),
            "WEB_CONCURRENCY": "1",
            "CHATMEMORY_VAR": str(var),
            "CHATMEMORY_BIND": f"127.0.0.1:{port}",
            "DATABASE_URL": url,
            "CHATMEMORY_METRICS_DIR": str(tmp_path / "metrics"),
            "CHATMEMORY_PRODUCTION": "1",
            "CHATMEMORY_HOSTS": "memory.example.org",
            "CHATMEMORY_SECRET_KEY": secrets.token_urlsafe(48),
            "HOME": str(tmp_path),
        }
        server = subprocess.Popen([app / "deploy" / "start"], cwd=app, env=environment)
        try:
            until(lambda: server.poll() is not None or accepts(port))
            ready = requests.get(f"http://127.0.0.1:{port}/readyz", timeout=SECONDS)
            assert ready.text == "ready\n"
            page = requests.get(
                f"http://127.0.0.1:{port}/sign-in/",
                headers={"Host": "memory.example.org"},
                allow_redirects=False,
            )
            assert page.headers["Location"] == "https://memory.example.org/sign-in/"
        finally:
            server.terminate()
            assert server.wait(30) == 0
    assert list((var / "static" / "inspector" / "css").glob("base.*.css.gz"))


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_image_copies_existing_files_and_runs_without_root():
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for name in copied():
        assert (ROOT / name).exists()
        assert f"!{Path(name).parts[0]}" in allowed
    user = re.search(r"^USER (\d+)$", DOCKERFILE, re.M)[1]
    assert f"--uid {user} " in DOCKERFILE
    assert "--require-hashes -r requirements-serve.txt" in DOCKERFILE


def test_compose_migrates_before_the_site_starts():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert services["migrate"]["command"][:2] == ["chatmemory", "migrate"]
    assert services["site"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}


@pytest.mark.parametrize("service", ["migrate", "site"])
def test_compose_for_others_starts_with_production_settings_only(service):
    """Compose refuses to start while a variable with `:?` is not set."""
    production = yaml.safe_load((ROOT / "deploy/compose.production.yaml").read_text())["services"]
    told = production[service]["environment"]
    assert told["CHATMEMORY_PRODUCTION"] == "1"
    for name in ("CHATMEMORY_SECRET_KEY", "CHATMEMORY_HOSTS"):
        assert told[name].startswith(f"${{{name}:?")
    assert production["database"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PA")


def test_images_and_build_tools_have_versions():
    """A floating tag, or a tool without a hash, is another program on another day."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    bases = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.M)
    images = [services["database"]["image"].partition(":")[2], *bases]
    assert len(images) == 2
    assert all(re.match(r"\d+[.]\d+([.]\d+)?-", each) for each in images)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"python:${PYTHON}"}
    assert "--require-hashes -r requirements-build.txt" in DOCKERFILE
    assert "--no-build-isolation" in DOCKERFILE


def test_kubernetes_probes_match_the_documentation():
    manifests = [*yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())]
    kinds = [each["kind"] for each in manifests]
    assert kinds == ["ConfigMap", "Job", "Deployment", "Service", "CronJob"]
    pod = manifests[2]["spec"]["template"]["spec"]
    (site,) = pod["containers"]
    assert {name: site[name]["httpGet"]["path"] for name in probes()} == probes()
    assert str(pod["securityContext"]["runAsUser"]) in DOCKERFILE
