from __future__ import annotations

import base64
import struct
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AudioContent,
    CustomMessage,
    ImageContent,
    OpenAiTokenCountEstimator,
    TokenWindowChatMemory,
    UserMessage,
)
from chatmemory.core.messages import DetailLevel, Image
from chatmemory.core.tokens import count_tokens, family_named, family_of


class WordCounter:
    """Counts words, and how often it was asked."""

    def __init__(self):
        self.asked = 0

    def estimate_token_count_in_text(self, text):
        return len(text.split())

    def estimate_token_count_in_message(self, message):
        self.asked += 1
        return self.estimate_token_count_in_text(message.contents[0].text)

    def estimate_token_count_in_messages(self, messages):
        return sum(map(self.estimate_token_count_in_message, messages))


def png(width: int, height: int) -> Image:
    header = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return Image(base64_data=base64.b64encode(header).decode(), mime_type="image/png")


def counted(content) -> int:
    return (
        OpenAiTokenCountEstimator("gpt-4o").estimate_token_count_in_message(UserMessage([content]))
        - 4
    )


def test_a_message_is_counted_once_ever():
    counter = WordCounter()
    memory = TokenWindowChatMemory(max_tokens=40, estimator=counter)
    for number in range(100):
        memory.add(UserMessage(f"this is message {number}"))
        memory.messages()
    assert counter.asked == 100
    assert len(memory.messages()) == 10


def test_estimators_without_a_family_do_not_share_counts():
    message = UserMessage("three words here")
    assert count_tokens(WordCounter(), message) == 3
    other = WordCounter()
    count_tokens(other, message)
    assert other.asked == 1


def test_a_picture_of_low_detail_costs_the_base():
    assert counted(ImageContent(png(4000, 4000), DetailLevel.LOW)) == 85


def test_pictures_cost_by_tiles():
    # OpenAI's published examples: 1024 x 1024 costs 765, 2048 x 4096 costs 1105.
    assert counted(ImageContent(png(1024, 1024), DetailLevel.HIGH)) == 765
    assert counted(ImageContent(png(2048, 4096), DetailLevel.HIGH)) == 1105


def test_a_picture_of_unknown_size_counts_as_a_square_of_1024():
    assert counted(ImageContent("https://example.org/cat.png", DetailLevel.AUTO)) == 765
    assert counted(ImageContent(Image(base64_data="!!"), DetailLevel.AUTO)) == 765


def test_what_langchain4j_refuses_is_estimated():
    estimator = OpenAiTokenCountEstimator("gpt-4o")
    assert counted(AudioContent()) == 765
    assert estimator.estimate_token_count_in_message(CustomMessage({"k": "v"})) > 4


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


def test_encodings_load_without_a_network(tmp_path):
    """In a process that may not open sockets, with an empty cache."""
    program = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise AssertionError('a socket was opened')\n"
        "socket.socket.connect = socket.create_connection = refuse\n"
        "from chatmemory import OpenAiTokenCountEstimator as Estimator\n"
        "print(Estimator('gpt-4o').estimate_token_count_in_text('Hello, world!'))\n"
        "print(Estimator('gpt-4').estimate_token_count_in_text('Hello, world!'))\n"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": "."}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert run.stdout.split() == ["4", "4"], run.stderr
