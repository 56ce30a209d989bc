"""The Python snippets of the docs run as they stand, in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "docs/library.md"])
def test_python_snippets_run(name, db, tmp_path):
    snippets = SNIPPET.findall((ROOT / name).read_text("utf-8"))
    assert snippets
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, name, "exec"), names)
    if "FileStore" in names:
        store = names["FileStore"](tmp_path)
        message = names["UserMessage"]("hello")
        store.update_messages("a", [message])
        assert store.get_messages("a") == [message]
        store.delete_messages("a")
        assert store.get_messages("a") == []


def test_the_api_page_has_the_java_store():
    store = (ROOT / "examples/langchain4j/HttpChatMemoryStore.java").read_text("utf-8")
    assert f"```java\n{store}```" in (ROOT / "docs/api.md").read_text("utf-8")
