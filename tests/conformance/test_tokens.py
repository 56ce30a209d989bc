from __future__ import annotations

import json
from pathlib import Path

import pytest

from chatmemory import OpenAiTokenCountEstimator, UnsupportedMessage, message_from_json

CASES = json.loads((Path(__file__).parent / "openai_token_cases.json").read_text())


def strict(model):
    return OpenAiTokenCountEstimator(model, strict=True)


def test_every_message_counts_as_in_langchain4j(record_property):
    counted = 0
    for case in CASES["cases"]:
        message = message_from_json(case["message"]) if case["message"] else None
        for model, expected in case["tokens"].items():
            if isinstance(expected, int):
                assert strict(model).estimate_token_count_in_message(message) == expected, case
            else:
                with pytest.raises(UnsupportedMessage):
                    strict(model).estimate_token_count_in_message(message)
            counted += 1
    record_property("conformance: token counts of messages", counted)


def test_every_list_counts_as_in_langchain4j(record_property):
    for case in CASES["lists"]:
        messages = [message_from_json(CASES["cases"][i]["message"]) for i in case["cases"]]
        for model, total in case["total"].items():
            assert strict(model).estimate_token_count_in_messages(messages) == total
    record_property("conformance: token counts of lists", len(CASES["lists"]))


def test_every_text_counts_as_in_langchain4j(record_property):
    for text, cl100k, o200k in CASES["texts"]:
        assert strict("gpt-4").estimate_token_count_in_text(text) == cl100k
        assert strict("gpt-4o").estimate_token_count_in_text(text) == o200k
    record_property("conformance: token counts of texts", 2 * len(CASES["texts"]))


@pytest.mark.parametrize("case", CASES["models"], ids=lambda case: repr(case["model"]))
def test_every_model_is_known_or_refused(case):
    if "error" in case or case["encoding"] == "other":
        # The encodings of the davinci family cannot be had offline: refused rather than guessed.
        with pytest.raises(ValueError, match=r"unknown|blank"):
            strict(case["model"])
    else:
        estimator = strict(case["model"])
        assert estimator.family.startswith(f"openai:{case['encoding']}")
        assert estimator.estimate_token_count_in_messages([]) == case["total_of_empty_list"]
