from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import NamedTuple

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from rest_framework.test import APIClient

from chatmemory import MessageWindow
from chatmemory.access.tokens import create_token
from chatmemory.distribution import distributed_tables
from chatmemory.models import Memory, Step

from ..connecting import connected_to
from ..conversations import create_and_add, numbered
from ..long_conversations import fleet, long_conversation
from .cluster import cluster_database

LONG, FLEET = 3_000, 300


class Cluster(NamedTuple):
    """The URL of a database on a cluster, and what `distribute` said of it."""

    url: str
    said: str


@pytest.fixture(scope="module")
def cluster(django_db_blocker):
    """A database that was distributed when it had conversations; tests of a module share it."""
    with django_db_blocker.unblock(), cluster_database() as url, connected_to(url):
        call_command("migrate", verbosity=0)
        call_command("load_demo")
        long_conversation("long", LONG)
        fleet(FLEET)
        copied = Memory.objects.filter(pk__regex="^(long|fleet)")
        Step.objects.filter(memory__in=copied).update(at=F("at") - timedelta(days=30))
        create_and_add("own", MessageWindow(3), numbered(9, "number"))
        output = StringIO()
        call_command("distribute", stdout=output)
        with connection.cursor() as cursor:
            cursor.execute(
                f"VACUUM ANALYZE {', '.join(distributed_tables())}"
            )  # as autovacuum does
        yield Cluster(url, output.getvalue())


@pytest.fixture
def browser(cluster) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get_or_create(username="op", is_superuser=True)[0])
    return client


@pytest.fixture(scope="module")
def secret(cluster) -> str:
    return create_token("tests", role="admin")


@pytest.fixture
def client_of_api(secret) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client
