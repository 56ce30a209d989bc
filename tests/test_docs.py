"""The snippets of the docs run as they stand, in their order; so do examples and benchmarks.

Those of docs/mounting.md make the project of tests/browser/test_mounted.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from django.core.management import call_command

from benchmarks import peers
from benchmarks.measuring import Elsewhere, in_turns
from chatmemory import (
    AiMessage,
    ChatMemoryProvider,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from examples.chat_loop import MOST_ROUNDS, Assistant
from inspector.command import COMMANDS

from . import processes

ROOT = Path(__file__).parents[1]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


WITH_SNIPPETS = ("library", "policies", "rules", "doctor", "quickstart/developer")
DOCS = ["README.md", *(f"docs/{name}.md" for name in WITH_SNIPPETS)]


@pytest.mark.parametrize("name", DOCS)
def test_python_snippets_run(name, db):
    snippets = SNIPPET.findall((ROOT / name).read_text("utf-8"))
    assert snippets
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, name, "exec"), names)


_ANSWERED = {"type": "message", "role": "assistant", "model": "claude-sonnet-5"}
_ANSWERED |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
_CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}
ANTHROPIC = [
    {**_ANSWERED, "id": "msg_1", "stop_reason": "tool_use", "content": [_CALL]},
    {
        **_ANSWERED,
        "id": "msg_2",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "It is sunny."}],
    },
]


def anthropic_client(*answers: dict):
    """A client of Anthropic's library that gets these answers."""
    anthropic = pytest.importorskip("anthropic")
    httpx = pytest.importorskip("httpx2")
    left = list(answers)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=left.pop(0)))
    client = httpx.Client(transport=transport)
    return anthropic.Anthropic(api_key="none", base_url="http://anthropic", http_client=client)


def gemini_client(*words: str):
    """A client of Google's library that gets an answer of these chunks."""
    genai = pytest.importorskip("google.genai")
    httpx = pytest.importorskip("httpx2")
    parts = [{"content": {"role": "model", "parts": [{"text": each}]}} for each in words]
    parts[-1]["finishReason"] = "STOP"
    told = "".join(f"data: {json.dumps({'candidates': [each]})}\r\n\r\n" for each in parts)
    head = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=head, text=told))
    options = genai.types.HttpOptions(client_args={"transport": transport})
    return genai.Client(api_key="none", http_options=options)


def test_snippets_of_streaming_run(capsys):
    openai = pytest.importorskip("openai")
    from .formats.test_openai_library import CHUNKS, EVENTS, Api

    api, anthropic = Api(CHUNKS, EVENTS), anthropic_client(*ANTHROPIC)
    assert isinstance(api.client, openai.OpenAI)
    names: dict[str, object] = {"client": api.client, "anthropic_client": anthropic}
    names["gemini_client"] = gemini_client("It is ", "sunny.")
    for snippet in SNIPPET.findall((ROOT / "docs/streaming.md").read_text("utf-8")):
        exec(compile(snippet, "docs/streaming.md", "exec"), names)
        if "tool_runner" in snippet:
            *_, result, answer = names["memory"].messages()
            assert (result.contents[0].text, answer.text) == ("Sunny in Rome", "It is sunny.")
        if "gemini_client" in snippet:
            assert names["memory"].messages()[-1].text == "It is sunny."
    assert capsys.readouterr().out == '{"city": "Rome"}' * 2 + "It is sunny."
    assert len(api.sent) == 2


def test_the_tests_of_the_docs_pass(db):
    names: dict[str, object] = {}
    for snippet in SNIPPET.findall((ROOT / "docs/testing.md").read_text("utf-8")):
        exec(compile(snippet, "docs/testing.md", "exec"), names)
    found = {name: each for name, each in names.items() if name.startswith("test_")}
    assert len(found) == 4
    for name, each in found.items():
        each(db) if name == "test_what_left_memory_is_in_the_history" else each()


KEEPS = """
from pathlib import Path
import sys
from chatmemory import UserMessage

store = FileStore(Path(sys.argv[1]) / "memories")
store.folder.mkdir()
said = {id: [UserMessage(f"\\u0142 {id}")] for id in ("a", "acme/7", "../evil", "..", "\\u0142")}
for id, messages in said.items():
    store.update_messages(id, [])
    store.update_messages(id, messages)
assert {id: store.get_messages(id) for id in said} == said
try:
    store.update_messages("a", [UserMessage("half of a face: \\ud83d")])
except UnicodeEncodeError:
    assert store.get_messages("a") == said["a"]
store.delete_messages("a")
assert store.get_messages("a") == []
assert sorted(path.name for path in Path(sys.argv[1]).iterdir()) == ["memories"]
"""


def test_the_store_of_the_docs_keeps_any_text_under_any_id(tmp_path):
    """Also where files are not UTF-8 by default, and if a text cannot be written."""
    snippets = SNIPPET.findall((ROOT / "docs/library.md").read_text("utf-8"))
    store = next(snippet for snippet in snippets if "class FileStore" in snippet)
    ran = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", store + KEEPS, tmp_path],
        env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


DEMO = {path.stem for path in (ROOT / "inspector/demo").glob("*.json")}


@pytest.mark.parametrize(
    "name", ["README.md", "docs/library.md", "docs/policies.md", "examples/chat_loop.py"]
)
def test_snippets_change_no_demo_conversation(name):
    """They may be pasted after `make run`, which loads these."""
    assert "order-7741" in DEMO
    text = (ROOT / name).read_text("utf-8")
    assert not [id for id in DEMO if f'"{id}"' in text]


def test_what_says_how_to_install_works_before_the_first_release():
    """The package is in no registry: extras are written after a dot, not after a name."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    names = [name for name in tracked.split() if name.endswith((".py", ".md", ".html"))]
    told = {name for name in names if "install 'django-" in (ROOT / name).read_text("utf-8")}
    assert told <= {"tests/test_docs.py", "CHANGELOG.md"}


def test_the_api_page_has_the_java_store():
    store = (ROOT / "examples/langchain4j/HttpChatMemoryStore.java").read_text("utf-8")
    assert f"```java\n{store}```" in (ROOT / "docs/api.md").read_text("utf-8")


def test_the_commands_of_the_readme_run(served, tmp_path):
    """They run in a checkout, and query another server than that of `make run`."""
    if not shutil.which("curl"):
        pytest.skip("no curl")
    (http,) = SHELL.findall((ROOT / "README.md").read_text("utf-8"))
    assert served.url not in http
    here = http.replace("http://127.0.0.1:8000", served.url)
    here = here.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")
    here = here.replace("curl", "curl --silent --show-error --fail")
    shell = ["sh", "-eu", "-c", here]
    ran = subprocess.run(
        shell, cwd=tmp_path, env=served.environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert served.history("hello") == [(1, "Hello")]


def test_a_second_import_of_transcripts_skips_what_is_imported(served, tmp_path):
    """`import_transcripts` of docs/formats.md, in a process of its own."""
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    (tmp_path / "chats.json").write_text(json.dumps(chat))
    for _ in range(2):
        line = [sys.executable, f"{ROOT}/manage.py", "import_transcripts", "chats.json"]
        given = [*line, "--policy", "token_window:1000"]
        ran = processes.run(given, served.environment, tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert served.history("chats-1") == [(1, "Hello"), (2, "Hi")]


TYPED = re.compile(r"^    \$ chatmemory (.*)\n((?:    [^$\n].*\n)*)", re.MULTILINE)


@pytest.mark.parametrize("name", ["operator", "agent"])
def test_the_commands_of_a_quickstart_print_what_it_shows(
    name, committing, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = (ROOT / f"docs/quickstart/{name}.md").read_text("utf-8")
    for script in SHELL.findall(page):
        subprocess.run(["sh", "-eu", "-c", script], check=True)
    typed = TYPED.findall(page)
    assert typed
    for line, shown in typed:
        command, *arguments = shlex.split(line)
        command = COMMANDS[command].command if command in COMMANDS else command
        with suppress(SystemExit):
            call_command(command, *arguments)
        printed = capsys.readouterr().out
        if shown:
            lines = [each.rstrip() for each in printed.splitlines()]
            assert lines == dedent(shown).splitlines(), line


def test_the_readme_shows_what_the_operators_quickstart_prints():
    shown = (each for _, each in TYPED.findall((ROOT / "README.md").read_text("utf-8")) if each)
    page = " ".join((ROOT / "docs/quickstart/operator.md").read_text("utf-8").split())
    assert [each for each in shown if " ".join(each.split()) not in page] == []


_BYTES = r"bytes a message at 100,000 messages \| ([\d.]+) "
MEASURED = {
    r"synchronous FULL, against a raw transaction .*services.add ([\d.]+) ms": "1,000 ms / {} ms",
    r"REST adds of 8 clients .* with ([\d.]+) ms of CPU each; a bare": "takes {} ms of CPU",
    r"1,000 idle streams, MB \| ([\d.]+) ": "1,000 live streams {} MB",
    _BYTES: "A message takes {} times the bytes",
}
MEASURED_ON_POSTGRESQL = {_BYTES: "On PostgreSQL it takes {} times the bytes"}


@pytest.mark.parametrize(
    ("command", "row", "said"),
    [("make bench RECORD=1", *each) for each in MEASURED.items()]
    + [("make bench POSTGRESQL=1 RECORD=1", *each) for each in MEASURED_ON_POSTGRESQL.items()],
)
def test_sizing_takes_the_figures_that_were_measured(command, row, said):
    page = (ROOT / "docs/performance.md").read_text("utf-8")
    figures, *_ = page.split(f"<!-- figures: {command} -->")[1].split("<!-- end of figures -->")
    (figure,) = re.findall(row, figures)
    sizing = " ".join((ROOT / "docs/operations.md").read_text("utf-8").split())
    assert said.format(figure) in sizing


DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub and GitLab make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = [re.sub(r"[`*?]", "", line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To files that are there, and to headings that they have."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if ":" in link:
            continue
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


def test_the_index_of_decisions_has_each():
    folder = ROOT / "docs/adr"
    pages = sorted(path.name for path in folder.glob("0*.md"))
    assert re.findall(r"\]\((.*)\)", (folder / "README.md").read_text("utf-8")) == pages


def test_the_map_of_contributing_is_true():
    table = re.findall(r"^\|.*$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    paths = [path for row in table for path in re.findall(r"`([\w.]+/[\w./]*)`", row)]
    assert len(paths) > 10
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_map_of_architecture_is_true():
    """Its rooms, and the modules and packages that it names in them."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 10
    homes = [ROOT, ROOT / "chatmemory", ROOT / "inspector"]
    for first, last in rows:
        names = re.findall(r"`([\w./]+)`", first)
        rooms = [home / name for name in names for home in homes if (home / name).exists()]
        assert len(rooms) >= len(names), first
        for name in re.findall(r"`([a-z_]+)/?`", last):
            found = [(room / name, room / f"{name}.py") for room in [*rooms, ROOT / "inspector"]]
            found += [(room / "timeline" / f"{name}.py",) for room in rooms]
            assert any(path.exists() for paths in found for path in paths), (first, name)


# Examples


CALL = ToolExecutionRequest.of("find_order", {"order": "A-1182"}, id="1")


def assistant(*answers: AiMessage, limit: int = 20) -> Assistant:
    """An assistant whose model gives these answers; `assistant.model.seen` has its prompts."""
    given, seen = iter(answers), []

    def model(messages):
        seen.append(messages)
        return next(given)

    model.seen = seen
    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, limit))
    return Assistant(model, memories, {"find_order": lambda order: f"{order}: shipped"}, "Brief.")


def test_the_results_of_tools_reach_the_model():
    chat = assistant(AiMessage(None, [CALL]), AiMessage("It is on its way."))
    assert chat.chat("a", "Where is it?") == "It is on its way."
    assert chat.model.seen[1] == [
        SystemMessage("Brief."),
        UserMessage("Where is it?"),
        AiMessage(None, [CALL]),
        ToolExecutionResultMessage("1", "find_order", "A-1182: shipped"),
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolExecutionRequest("1", "find_order", "{"), "JSONDecodeError"),
        (ToolExecutionRequest("1", "find_order", '{"number": 7}'), "TypeError"),
        (ToolExecutionRequest("1", "other", "{}"), "KeyError: 'other'"),
    ],
)
def test_the_model_hears_of_the_error_of_a_tool(call, error):
    chat = assistant(AiMessage(None, [call]), AiMessage("Sorry."))
    assert chat.chat("a", "Where is it?") == "Sorry."
    result = chat.model.seen[1][-1]
    assert result.is_error
    assert error in result.contents[0].text


def test_a_model_that_only_calls_tools_is_stopped():
    chat = assistant(*[AiMessage(None, [CALL])] * MOST_ROUNDS)
    with pytest.raises(RuntimeError, match="still calls tools after 10 rounds"):
        chat.chat("a", "Where is it?")


def test_it_runs_by_itself():
    command = [sys.executable, "-m", "examples.chat_loop"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "Here it is: A-1182: shipped.\n5 messages in memory\n"


# Benchmarks measure what they can, and say what they cannot.


def test_a_call_elsewhere_tells_its_own_time():
    assert in_turns({"elsewhere": Elsewhere(lambda: 12.5)}, 3) == {"elsewhere": 12.5}


def test_without_the_other_libraries_their_figures_are_left_out_and_a_line_says_so(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path)
    assert list(peers.figures(str(tmp_path))) == []
    assert "make bench-peers" in capsys.readouterr().out
