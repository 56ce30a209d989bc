"""Balancers, kubelets and Prometheus ask a deployed server by its address."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import requests
import yaml

from ..deployed import Deployed, deploying
from ..serving import ROOT
from .test_nginx import proxying, pytestmark  # noqa: F401  (left out without nginx)

TOKEN = "a-token-of-the-tests"
BY_ADDRESS = {"Host": "10.0.0.7:8000"}


@pytest.fixture(scope="module")
def monitored(template, tmp_path_factory) -> Iterator[Deployed]:
    """A deployed server whose log is in a file."""
    folder = tmp_path_factory.mktemp("monitored")
    with (
        (folder / "log").open("w+") as log,
        deploying(folder, template, log=log, CHATMEMORY_METRICS_TOKEN=TOKEN) as deployed,
    ):
        yield deployed


def probes() -> dict[str, str]:
    """The paths of the probes that docs/operations.md shows."""
    text = (ROOT / "docs" / "operations.md").read_text()
    shown = yaml.safe_load(re.search(r"```yaml\n(livenessProbe:.+?)```", text, re.S)[1])
    return {name: probe["httpGet"]["path"] for name, probe in shown.items()}


def scraping() -> tuple[str, dict[str, str]]:
    """The path and the headers with which deploy/prometheus.yml has Prometheus ask."""
    (job,) = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    assert job["authorization"].keys() == {"credentials_file"}  # and so of the type Bearer
    return job["metrics_path"], {"Authorization": f"Bearer {TOKEN}"}


def test_probes_ask_by_address_and_over_plain_http(monitored):
    assert probes() == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for path in probes().values():
        answer = requests.get(monitored.served.url + path, headers=BY_ADDRESS)
        assert (answer.status_code, answer.history) == (200, [])
    page = requests.get(monitored.served.url, headers=BY_ADDRESS | {"X-Forwarded-Proto": "https"})
    assert page.status_code == 400
    log = (monitored.served.log.seek(0), monitored.served.log.read())[1]
    assert log.count("Invalid HTTP_HOST header") == 1  # of the page


def test_prometheus_asks_by_address_directly_and_through_nginx(monitored, tmp_path):
    path, headers = scraping()
    url = monitored.served.url + path
    assert requests.get(url, headers=BY_ADDRESS).status_code == 401
    assert "chatmemory_messages_added_total" in requests.get(url, headers=BY_ADDRESS | headers).text
    with proxying(monitored.served, tmp_path) as proxy:
        prometheus = proxy.session()
        prometheus.headers.update(BY_ADDRESS)
        assert prometheus.get(proxy.url + path).status_code == 401
        assert (
            "chatmemory_messages_added_total"
            in prometheus.get(proxy.url + path, headers=headers).text
        )
        for probe in probes().values():
            plain = f"http://127.0.0.1:{proxy.plain_port}{probe}"
            assert requests.get(plain, headers=BY_ADDRESS, allow_redirects=False).ok
