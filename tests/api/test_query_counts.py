"""The number of queries does not depend on the length of a conversation."""

from __future__ import annotations

import pytest

from .said import URL, add


def test_adding_takes_a_bounded_number_of_queries(api, memory_id, django_assert_max_num_queries):
    add(api, *(str(n) for n in range(200)))
    with django_assert_max_num_queries(16):
        add(api, "one more")
    with django_assert_max_num_queries(16):
        add(api, *(str(n) for n in range(100)))


@pytest.mark.parametrize(
    "path", ["messages/", "messages/?at=100", "history/", "steps/", "steps/50/", "messages/7/"]
)
def test_reading_takes_a_bounded_number_of_queries(
    api, memory_id, django_assert_max_num_queries, path
):
    add(api, *(str(n) for n in range(200)))
    with django_assert_max_num_queries(10):
        assert api.get(URL + path).status_code == 200
