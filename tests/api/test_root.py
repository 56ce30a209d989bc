"""The root of the API, from which a client finds the rest."""

from __future__ import annotations

from django.test import Client


def test_the_root_leads_to_the_lists_and_the_documents(api):
    told = api.get("/api/v1/").json()
    assert told == {
        "memories": "http://testserver/api/v1/memories/",
        "schema": "http://testserver/api/v1/schema/",
        "docs": "http://testserver/api/docs/",
    }
    assert api.get(told["memories"]).status_code == 200
    assert api.get(f"{told['schema']}?format=json").status_code == 200


def test_the_root_needs_a_token(db):
    assert Client().get("/api/v1/").status_code == 401
