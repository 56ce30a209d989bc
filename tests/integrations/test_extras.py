"""Each framework's extra, as pip installs it."""

from __future__ import annotations

import pytest

from tests.wheels import empty_venv, python

FRAMEWORKS = ["llama-index", "openai-agents", "pydantic-ai"]


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_an_extra_brings_its_framework(installed, tmp_path, extra):
    module = f"chatmemory.integrations.{extra.replace('-', '_')}"
    paths = empty_venv(installed, tmp_path, extra)
    python("-S", "-c", f"import {module}", paths=paths, home=tmp_path)


WITHOUT = f"""
from importlib import import_module
for extra in {FRAMEWORKS}:
    try:
        import_module("chatmemory.integrations." + extra.replace("-", "_"))
    except ImportError as error:
        print(error)
"""


def test_without_it_a_module_says_what_to_install(installed, tmp_path):
    told = python("-S", "-c", WITHOUT, paths=empty_venv(installed, tmp_path), home=tmp_path)
    advice = [line.rpartition(": ")[2] for line in told.splitlines()]
    assert advice == [f"pip install '.[{extra}]' in a checkout" for extra in FRAMEWORKS]
