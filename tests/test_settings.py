"""Mistakes in settings and models are reported at the start, with their correction.

Policies, formats and estimators of projects and packages work like the built-in ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands, load_command_class
from django.core.management.base import SystemCheckError

from chatmemory import (
    MessageWindow,
    TokenWindow,
    TokenWindowChatMemory,
    UnknownEstimator,
    UserMessage,
    policy_from_dict,
    policy_from_text,
    policy_kinds,
    services,
)
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    read_transcripts,
    readable_formats,
    render_messages,
    two_way_formats,
)
from chatmemory.ledger.verification import verify
from chatmemory.messages.estimators import (
    ESTIMATORS,
    OpenAiTokenCountEstimator,
    estimator_for,
    family_named,
    is_known,
)
from chatmemory.reading import conversations, windows
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.policies import KINDS

from .conversations import create_and_add, users
from .shop import HalfWindow


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
        ({"FACT_TERMS": "x"}, r'"FACT_TERMS"\] must be a list of texts'),
        ({"FACT_TERMS": [""]}, "a word that is a fact must be a text"),
        ({"FACT_PREFIXES": 5}, r'"FACT_PREFIXES"\] must be a list of texts'),
        ({"DEFAULT_POLICIES": ["message_window:1"]}, r'"DEFAULT_POLICIES"\] must be a dictionary'),
        ({"DEFAULT_POLICIES": {"a": "token_window"}}, r'"DEFAULT_POLICIES"\] has \'a\': '),
        (
            {"DEFAULT_POLICIES": {"a": 5}},
            r'"DEFAULT_POLICIES"\] has \'a\': 5, but prefix and policy must be strings',
        ),
        ({"DEFAULT_POLICIES": {1: "message_window:1"}}, "prefix and policy must be strings"),
        ({"POLICIES": "tests.shop.HalfWindow"}, r'"POLICIES"\] must be a list of dotted paths'),
    ],
)
def test_a_mistake_stops_the_start(settings, given, why):
    with pytest.raises(ImproperlyConfigured, match=why):
        start(settings, given)


def test_right_values_are_taken(settings):
    start(
        settings,
        {
            "ESTIMATOR": "gpt-4",
            "PAGE_SIZE": 200,
            "IDEMPOTENCY_HOURS": 1,
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


# Policies, formats and estimators of projects and packages


SETTING = {
    "POLICIES": ["tests.shop.HalfWindow"],
    "FORMATS": ["tests.shop.LINES"],
    "ESTIMATORS": ["tests.shop.WordEstimator"],
}


@pytest.fixture
def extended(settings):
    start(settings, SETTING)
    yield
    for registry, name in ((KINDS, "half_window"), (FORMATS, "lines"), (ESTIMATORS, "words")):
        if name in registry:
            registry.unregister(name)


def test_a_policy_is_found_by_its_kind(extended):
    assert policy_kinds()["half_window"] is HalfWindow
    assert policy_from_text("half_window:4") == HalfWindow(4)
    assert policy_from_dict({"kind": "half_window", "max_messages": 4}) == HalfWindow(4)


def test_a_format_is_written_read_and_recognised(extended):
    rendered = render_messages([UserMessage("hello")], "lines")
    assert rendered.value == [{"said": "hello"}]
    assert parse_messages(rendered.value, "lines").messages == (UserMessage("hello"),)

    reading = read_transcripts(json.dumps({"lines": [{"said": "hello"}]}))
    assert reading.format == "lines"
    assert reading.transcripts[0].messages == (UserMessage("hello"),)


def test_an_estimator_is_found_by_its_name_with_and_without_an_argument(extended):
    assert estimator_for("words").estimate_token_count_in_text("a b c") == 3
    assert estimator_for("words:2").estimate_token_count_in_text("a b c") == 6
    assert is_known("words:2")
    assert not is_known("words:many")
    assert not is_known("words:\n")


def test_each_name_is_a_family_unless_the_estimator_names_it(extended):
    assert (family_named("words"), family_named("words:2")) == ("words", "words:2")
    ESTIMATORS.register("words", lambda name: OpenAiTokenCountEstimator("gpt-4o"))
    assert family_named("words") == family_named("gpt-4o")


def test_an_estimator_counts_and_is_stored_under_its_name(extended, db):
    policy = policy_from_dict({"kind": "token_window", "max_tokens": 5, "estimator": "words"})
    assert policy == TokenWindow(5, estimator="words", fixed_overhead=1)
    memory = TokenWindowChatMemory("m", 5, estimator_for("words"), DjangoChatMemoryStore())
    memory.add(UserMessage("one two"), UserMessage("three four"), UserMessage("five"))
    assert memory.messages() == users("three four", "five")
    assert [(row.seq, row.tokens) for row in windows.window("m").rows] == [(2, 2), (3, 1)]
    assert conversations.memory("m").policy == policy
    assert verify("m") is None


def test_a_conversation_can_be_read_without_its_estimator(extended, db, operator_client):
    create_and_add("m", MessageWindow(5, estimator="words"), [UserMessage("one two")])
    ESTIMATORS.unregister("words")
    assert DjangoChatMemoryStore().get_messages("m") == [UserMessage("one two")]
    assert [row.tokens for row in windows.window("m").rows] == [2]
    assert verify("m") is None
    assert operator_client.get("/c/m/").status_code == 200
    with pytest.raises(UnknownEstimator, match="'words', which is not installed"):
        services.add("m", [UserMessage("three")])
    services.change("m", policy=MessageWindow(5))
    services.add("m", [UserMessage("three")])
    assert verify("m") is None


@pytest.mark.parametrize("setting", SETTING)
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere.at.all", "cannot be imported"),
        ("tests.shop.missing", "cannot be imported"),
        (5, "cannot be imported"),
        ("tests.shop.UserMessage", "is not an? "),
    ],
)
def test_an_invalid_path_is_named(settings, setting, path, why):
    with pytest.raises(ImproperlyConfigured, match=why) as refused:
        start(settings, {setting: [path]})
    assert setting in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_path_of_the_wrong_kind_is_named(settings):
    with pytest.raises(ImproperlyConfigured, match=r"POLICIES.*LINES.*not a Policy class"):
        start(settings, {"POLICIES": ["tests.shop.LINES"]})


# In a process of its own


def run(program: str, path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}.", **environment},
        capture_output=True,
        text=True,
    )


ENTRY_POINTS = """
[chatmemory.policies]
half_window = tests.shop:HalfWindow
[chatmemory.formats]
lines = tests.shop:LINES
broken = tests.shop:missing
wrong = tests.shop:WordEstimator
[chatmemory.estimators]
words = tests.shop:WordEstimator
"""


@pytest.fixture
def package(tmp_path) -> str:
    """An installed distribution, as importlib.metadata sees it."""
    metadata = tmp_path / "shop-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return str(tmp_path)


def test_an_installed_package_registers_by_entry_points(package):
    done = run(
        "from chatmemory import UserMessage, policy_from_text\n"
        "from chatmemory.messages.estimators import estimator_for\n"
        "from chatmemory.formats import FORMATS, render_messages\n"
        "print(policy_from_text('half_window:4').label)\n"
        "print(estimator_for('words:2').estimate_token_count_in_text('a b'))\n"
        "print(render_messages([UserMessage('hello')], 'lines').value)\n"
        "print(*FORMATS)\n",
        package,
    )
    assert done.stdout.splitlines() == [
        "Half window",
        "4",
        "[{'said': 'hello'}]",
        " ".join([*FORMATS, "lines"]),
    ], done.stderr
    assert "chatmemory.formats 'broken' cannot be loaded" in done.stderr
    assert "chatmemory.formats 'wrong' cannot be loaded" in done.stderr


def test_the_api_and_the_pages_offer_items_of_the_settings(tmp_path):
    (tmp_path / "shop_settings.py").write_text(
        f"from inspector.project.settings import *\nCHATMEMORY = {SETTING!r}\n"
    )
    done = run(
        "import django; django.setup()\n"
        "from chatmemory.api.requests import MessagesRequest\n"
        "from inspector.rooms.transfer.forms import ImportForm\n"
        "print(*MessagesRequest().fields['format'].names())\n"
        "print(*sorted(dict(ImportForm().fields['format'].choices)))\n",
        str(tmp_path),
        DJANGO_SETTINGS_MODULE="shop_settings",
    )
    assert done.stdout.splitlines() == [
        " ".join([*two_way_formats(), "lines"]),
        " ".join(sorted(["auto", *readable_formats(), "lines"])),
    ], done.stderr
