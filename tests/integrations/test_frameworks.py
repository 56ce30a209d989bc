"""The examples of the frameworks, and the lines of docs/frameworks.md."""

from __future__ import annotations

import ast
import asyncio
import re
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from agents import set_tracing_disabled
from asgiref.sync import async_to_sync
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from llama_index.core.llms import MockLLM
from pydantic_ai.models.test import TestModel

from chatmemory.stores.database import DjangoChatMemoryStore
from examples.with_openai_agents import Polite

from .conftest import texts

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("with_*.py"))
RESPONSE = {
    "object": "response",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "On its way.", "annotations": []}],
        }
    ],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_ends_with_the_page_of_its_conversation(name, db, capsys, operator_client):
    async_to_sync(import_module(f"examples.{name}").main)()
    address = capsys.readouterr().out.splitlines()[-1]
    page = operator_client.get(address.removeprefix("http://127.0.0.1:8000"))
    assert page.status_code == 200
    assert "A-1182" in page.content.decode()
    memory_id = name.replace("_", "-")
    assert len(DjangoChatMemoryStore().get_history(memory_id)) == 6
    assert len(DjangoChatMemoryStore().get_messages(memory_id)) == 4


@pytest.mark.needs("pydantic_ai")
def test_the_lines_of_the_docs_run(db):
    page = (ROOT / "docs/frameworks.md").read_text("utf-8")
    set_tracing_disabled(disabled=True)
    names = {
        "langchain_model": GenericFakeChatModel(messages=iter(["On its way."] * 2)),
        "agents_model": Polite(),
        "pydantic_ai_model": TestModel(),
        "llama_index_model": MockLLM(),
        "client": SimpleNamespace(responses=SimpleNamespace(create=lambda **given: RESPONSE)),
    }
    snippets = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for number, snippet in enumerate(snippets, 1):
        code = compile(snippet, "docs/frameworks.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if "rooms.pydantic_ai" in snippet and not find_spec("pydantic_ai.conversation_store"):
            continue  # an older Pydantic AI has no stores
        if (awaited := eval(code, names)) is not None:
            async_to_sync(partial(asyncio.wait_for, awaited, 60))()
        asked, answered = texts(DjangoChatMemoryStore().get_history(f"order-{number}"))
        assert (asked, bool(answered)) == ("Where is my parcel?", True)
