"""Adding a page as docs/extending.md says: a view, a URL, a template, and a row of the roles."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.test import Client
from django.urls import include, path
from django.views.decorators.http import require_safe

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from chatmemory.reading import conversations
from inspector.access import write_required

TEMPLATE = """{% extends "inspector/base.html" %}
{% block title %}Sizes{% endblock title %}
{% block main %}
  <h1>{{ memory.id }} holds {{ memory.said_count }}</h1>
{% endblock main %}
"""


@require_safe
def sizes(request: HttpRequest, memory_id: str) -> HttpResponse:
    return render(request, "sizes.html", {"memory": conversations.memory(memory_id)})


urlpatterns = [
    path("c/<memory:memory_id>/sizes/", write_required(sizes), name="sizes"),
    path("", include("inspector.project.urls")),
]


@pytest.fixture
def new_page(settings, tmp_path, memory_id):
    (tmp_path / "sizes.html").write_text(TEMPLATE)
    settings.ROOT_URLCONF = __name__
    settings.TEMPLATES = [
        {**settings.TEMPLATES[0], "DIRS": [*settings.TEMPLATES[0]["DIRS"], tmp_path]}
    ]
    return f"/c/{memory_id}/sizes/"


def test_a_new_page_is_shown_in_the_frame_of_the_others(new_page, operator_client):
    response = operator_client.get(new_page)
    assert b"order-7741 holds 0" in response.content
    assert b"topbar" in response.content
    assert "default-src 'self'" in response["Content-Security-Policy"]


def test_a_new_page_asks_for_a_role(new_page, django_user_model):
    assert Client().get(new_page).status_code == 302
    nobody = Client()
    nobody.force_login(django_user_model.objects.create_user("nobody"))
    assert nobody.get(new_page).status_code == 403


def test_a_new_page_answers_404_for_an_unknown_conversation(new_page, operator_client):
    assert operator_client.get(new_page.replace("7741", "none")).status_code == 404
