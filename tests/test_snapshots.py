"""A page reads one state of the database, whatever is written while it is read."""

from __future__ import annotations

import pytest
from django.db import connection
from rest_framework.test import APIClient

from chatmemory import MessageWindow, UserMessage, queries, services
from chatmemory.access.tokens import create_token
from chatmemory.queries import ConversationQuery

from .connecting import connected
from .conversations import create_and_add, numbered

QUERY = ConversationQuery(at=9, msg=2, find="message", other=4)


class MadeAnew:
    """Deletes a conversation after some queries, and makes a shorter one with its id."""

    def __init__(self, after: int, of_table: str = "") -> None:
        self.left, self.of_table = after, of_table

    def __call__(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if self.of_table in sql and sql.startswith("SELECT"):
            self.left -= 1
            if self.left == 0:
                with connected(connection.settings_dict["NAME"]):
                    services.delete("m")
                    make(2)
        return result


def make(messages: int) -> None:
    create_and_add("m", MessageWindow(3), numbered(messages))


@pytest.mark.parametrize("after", [1, 8, 15])
def test_a_state_is_read_at_once(committing, after):
    make(12)
    before = queries.conversation_state("m", QUERY)
    with connection.execute_wrapper(MadeAnew(after)):
        assert queries.conversation_state("m", QUERY) == before
    assert queries.memory("m").said_count == 2


def test_so_is_the_state_of_a_simulation(committing):
    make(12)
    trial = queries.WhatIf((UserMessage("a draft"),), 2)
    before = queries.simulated_state("m", QUERY, trial)
    with connection.execute_wrapper(MadeAnew(14)):
        after = queries.simulated_state("m", QUERY, trial)
    assert (after.simulated, after.window) == (before.simulated, before.window)


@pytest.mark.parametrize("url", ["messages/2/", "steps/9/", "history/?at=9"])
def test_so_are_answers_of_the_api(committing, url):
    make(12)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests', role='admin')}")
    url = f"/api/v1/memories/m/{url}"
    before = client.get(url).content
    with connection.execute_wrapper(MadeAnew(1, of_table="chatmemory_me")):
        assert client.get(url).content == before
