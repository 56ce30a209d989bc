"""Mistakes in settings and models are told at the start, with what is to be written instead."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands, load_command_class
from django.core.management.base import SystemCheckError


def start(settings, given) -> None:
    """Start the app with this CHATMEMORY setting, as Django does."""
    settings.CHATMEMORY = given
    apps.get_app_config("chatmemory").ready()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "CHATMEMORY must be a dictionary such as"),
        ([], "CHATMEMORY must be a dictionary such as"),
        ({"PAGES": 5, 1: 2}, "CHATMEMORY has no setting 1, PAGES"),
        ({"ESTIMATOR": "gpt-99"}, r'"ESTIMATOR"\] must name an estimator such as gpt-4o: .*gpt-99'),
        ({"ESTIMATOR": ""}, r'"ESTIMATOR"\] must name an estimator'),
        ({"ESTIMATOR": None}, r'"ESTIMATOR"\] must be the name of an estimator such as "gpt-4o"'),
        ({"PAGE_SIZE": 0}, r'"PAGE_SIZE"\] must be a whole number from 1 to 200, but is: 0'),
        (
            {"PAGE_SIZE": "50"},
            r'"PAGE_SIZE"\] must be a whole number from 1 to 200, but is: \'50\'',
        ),
        ({"PAGE_SIZE": True}, r'"PAGE_SIZE"\] must be a whole number'),
        ({"PAGE_SIZE": 201}, r'"PAGE_SIZE"\] must be a whole number'),
        ({"IDEMPOTENCY_HOURS": 10**9}, r'"IDEMPOTENCY_HOURS"\] must be a whole number'),
        (
            {"TEXT_CHARACTERS": 0},
            r"TEXT_CHARACTERS\"\] must be a whole number from 1 to 16,777,216",
        ),
        ({"MEDIA_BYTES": "4 MB"}, r"MEDIA_BYTES\"\] must be a whole number"),
        ({"POST_BYTES": 0}, r'"POST_BYTES"\] must be a whole number from 1 to 1,073,741,824, but'),
        ({"PUT_BYTES": "4 MB"}, r'"PUT_BYTES"\] must be a whole number from 1 to'),
        ({"ADDED_MESSAGES": 0}, r'"ADDED_MESSAGES"\] must be a whole number from 1 to 1,000,000'),
        ({"LISTED_MESSAGES": None}, r'"LISTED_MESSAGES"\] must be a whole number'),
        ({"REDIS_URL": "nonsense"}, r'"REDIS_URL"\] must be empty, or a URL such as "redis://'),
        ({"REDIS_URL": "redis://h:abc/0"}, r'"REDIS_URL"\] must be empty, or a URL'),
        ({"REDIS_URL": None}, r'"REDIS_URL"\] must be empty, or a URL'),
        ({"FACT_TERMS": "x"}, r'"FACT_TERMS"\] must be a list of texts'),
        ({"FACT_TERMS": [""]}, "a word that is a fact must be a text"),
        ({"FACT_PREFIXES": 5}, r'"FACT_PREFIXES"\] must be a list of texts'),
        ({"DEFAULT_POLICIES": ["message_window:1"]}, r'"DEFAULT_POLICIES"\] must be a dictionary'),
        ({"DEFAULT_POLICIES": {"a": "token_window"}}, r'"DEFAULT_POLICIES"\] has \'a\': '),
        ({"DEFAULT_POLICIES": {"a": 5}}, r'"DEFAULT_POLICIES"\] has \'a\': 5: both must be text'),
        ({"DEFAULT_POLICIES": {1: "message_window:1"}}, "both must be text"),
        ({"POLICIES": "tests.shop.HalfWindow"}, r'"POLICIES"\] must be a list of dotted paths'),
    ],
)
def test_a_mistake_is_told_at_the_start(settings, given, why):
    with pytest.raises(ImproperlyConfigured, match=why):
        start(settings, given)


def test_a_wrong_url_of_redis_is_not_quoted(settings):
    with pytest.raises(ImproperlyConfigured) as told:
        start(settings, {"REDIS_URL": "http://:secret@host"})
    assert "secret" not in str(told.value)


def test_right_values_are_taken(settings):
    start(
        settings,
        {
            "ESTIMATOR": "gpt-4",
            "PAGE_SIZE": 200,
            "IDEMPOTENCY_HOURS": 1,
            "REDIS_URL": "rediss://host/0",
            "FACT_TERMS": ("x",),
        },
    )


APPS = {"chatmemory", "inspector", "inspector.project"}
SERVES = ("serve", "run")
COMMANDS = sorted(
    name for name, app in get_commands().items() if app in APPS and name not in SERVES
)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_checks_the_models_and_loads_no_pages(name, db, settings):
    settings.ROOT_URLCONF = "of.no.module"
    command = load_command_class(get_commands()[name], name)
    command.check(**command.get_check_kwargs({}))
    settings.USE_TZ = False
    with pytest.raises(SystemCheckError, match="USE_TZ"):
        command.check(**command.get_check_kwargs({}))
