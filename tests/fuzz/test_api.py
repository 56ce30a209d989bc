"""Requests generated from the OpenAPI document get documented responses from a real server.

schemathesis checks each answer against the schema: its status, its type, its shape. It makes up one
request after another, and sequences that its stateful phase finds links for. As most ids it makes
up are unknown, a second search stays in one conversation that exists;
`make test` makes up single requests in that one only.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .budget import SECONDS

CHECKS = "negative_data_rejection,positive_data_acceptance"  # the schema cannot express all rules
ONE_CONVERSATION = """
[parameters]
"path.memory_id" = "fuzzed"
"path.seq" = 1
"path.n" = 1
"""
SEARCHES = {
    "everywhere": ("", ["examples", "stateful"], []),
    "in one conversation": (
        ONE_CONVERSATION,
        ["fuzzing"],
        ["--exclude-operation-id", "delete_memory"],
    ),
}


@pytest.mark.own_server
@pytest.mark.parametrize("name", SEARCHES)
def test_every_request_to_the_api_gets_a_valid_response(served, tmp_path, name):
    served.create("fuzzed")
    served.say("fuzzed", "one", "two", "three", "four")
    try:
        _search(served, tmp_path, *SEARCHES[name])
    finally:
        served.api.delete(f"{served.url}/api/v1/memories/fuzzed/")


def _search(served, folder, config: str, phases: list[str], options: list[str]) -> None:
    (folder / "schemathesis.toml").write_text(config)
    budget = ["--max-examples", "2", "--generation-deterministic"]
    if SECONDS:
        # Every value of every parameter: minutes, not seconds
        phases = ["coverage", "fuzzing", *(each for each in phases if each != "fuzzing")]
        seconds = str(int(SECONDS / len(SEARCHES)))
        budget = ["--max-time", seconds, "--generation-database", "none"]
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        *("--config-file", str(folder / "schemathesis.toml")),
        *("run", f"{served.url}/api/v1/schema/"),
        *("--header", f"Authorization: {served.api.headers['Authorization']}"),
        *("--exclude-checks", CHECKS, "--continue-on-failure", "--no-color"),
        *("--phases", ",".join(phases), "--request-timeout", "20"),
        *options,
        *budget,
    ]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
