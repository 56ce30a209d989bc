"""A Python client that openapi-python-client generates from the document of a real server."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from chatmemory.messages.ids import address

PACKAGE = "generated_client"
MADE_UP = re.compile(r"type_?\d|inline|patched|enum|_item|_\d")  # invented by the generator


@pytest.fixture(scope="module")
def generated(shared_server, tmp_path_factory):
    """The folder of the client, which can be imported."""
    folder = tmp_path_factory.mktemp("generated")
    document = shared_server.api.get(f"{shared_server.url}/api/v1/schema/?format=json")
    (folder / "openapi.json").write_bytes(document.content)
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = [
        *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
        *("--path", str(folder / "openapi.json"), "--config", str(folder / "config.yml")),
        *("--output-path", str(folder / PACKAGE), "--fail-on-warning"),
    ]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder / PACKAGE


@pytest.fixture
def client(generated, shared_server):
    package = importlib.import_module(PACKAGE)
    with package.AuthenticatedClient(shared_server.url, shared_server.token) as client:
        yield client


def operation(tag: str, name: str):
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{name}").sync


def test_no_name_is_made_up(generated):
    names = {file.stem for file in generated.rglob("*.py")}
    assert {"user_message", "message_window_policy", "changes", "history", "problem"} <= names
    assert not {name for name in names if MADE_UP.search(name)}


def test_its_calls_are_carried_out(client):
    models = importlib.import_module(f"{PACKAGE}.models")
    memory_id = "generated/client"
    kind = models.MessageWindowPolicyKind.MESSAGE_WINDOW
    policy = models.MessageWindowPolicy(kind=kind, max_messages=2)
    body = models.CreateMemoryRequest(id=memory_id, policy=policy)
    memory = operation("memories", "create_memory")(client=client, body=body)
    assert (memory.id, memory.address) == (memory_id, address(memory_id))
    assert (memory.policy.max_messages, memory.policy.snap_to_user) == (2, False)

    def user_message(word: str):
        content = models.TextContent(type_=models.TextContentType.TEXT, text=word)
        return models.UserMessage(type_=models.UserMessageType.USER, contents=[content])

    def call(name: str, *arguments, **options):
        return operation("memories", name)(memory.address, *arguments, client=client, **options)

    words = [user_message(word) for word in ("one", "two", "three")]
    body = models.AddRequest(messages=words, format_=models.MessageFormat.LANGCHAIN4J)
    changes = call("add_messages", body=body, if_match='"0"')
    assert [each.evicted_count for each in changes.changes] == [0, 0, 1]
    assert call("get_window").messages == words[1:]
    assert [each.text for each in call("get_history").messages] == ["one", "two", "three"]
    assert [each.kind for each in call("list_steps").steps] == ["add"] * 3
    assert call("get_step", 3).evicted[0].reason == "CAPACITY"

    tried = models.SimulationRequest(
        messages=[models.MessageOfAnotherFormat.from_dict({"role": "user", "content": "four"})],
        format_=models.MessageFormat.OPENAI_CHAT,
        policy=models.TokenWindowPolicy(
            kind=models.TokenWindowPolicyKind.TOKEN_WINDOW, max_tokens=500
        ),
    )
    assert call("simulate", body=tried).window.count == 3

    conflict = call("clear_window", if_match='"1"')
    assert (type(conflict), conflict.status) == (models.Problem, 412)
    assert conflict.current.version == 3
    unknown = operation("memories", "get_memory")("unknown", client=client)
    assert (unknown.title, unknown.status) == ("Conversation not found", 404)

    assert operation("store", "get_messages")(memory.address, client=client) == words[1:]
    assert call("delete_memory") is None
