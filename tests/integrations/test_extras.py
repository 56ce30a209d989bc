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


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_without_it_the_module_says_what_to_install(installed, tmp_path, extra):
    paths = empty_venv(installed, tmp_path)
    program = f"""
try:
    import chatmemory.integrations.{extra.replace("-", "_")}
except ImportError as error:
    print(error)
"""
    told = python("-S", "-c", program, paths=paths, home=tmp_path)
    assert told.strip().endswith(f"pip install '.[{extra}]' in a checkout")
