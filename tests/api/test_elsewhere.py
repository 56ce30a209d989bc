"""The API in another project, which only installs the app and includes the URLs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = """
import django
from django.conf import settings

settings.configure(
    SECRET_KEY="elsewhere",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["testserver"],
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "rest_framework",
        "drf_spectacular",
        "chatmemory",
    ],
    REST_FRAMEWORK={"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"},
)
django.setup()

from django.core.checks import run_checks
from django.core.management import call_command
from django.urls import include, path
from rest_framework.test import APIClient
from rest_framework.views import APIView
from chatmemory.access.tokens import create_token

urlpatterns = [
    path("api/", include("chatmemory.api.urls")),
    path("api/v1/salaries/", APIView.as_view()),
]
call_command("migrate", verbosity=0)
anyone, viewer, operator = APIClient(), APIClient(), APIClient()
viewer.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('viewer', 'viewer')}")
operator.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('operator')}")

here = "/api/v1/memories/"
body = {"id": "m", "policy": {"kind": "message_window", "max_messages": 3}}
for client in (anyone, viewer, operator):
    answer = client.post(here, body, format="json")
    print(answer.status_code, answer["Content-Type"])
    print(client.get(here).status_code, client.get("/api/v1/schema/").status_code)
print(operator.post(here, "<m/>", content_type="application/xml").status_code)
print(operator.post(here, body, format="json").data["title"])
print(anyone.post(here, " " * (2 * 2**20 + 1), content_type="application/json").data["detail"])
print(operator.put(f"{here}m/messages/", HTTP_TRANSFER_ENCODING="chunked").data["title"])
print(operator.get(here)["Cache-Control"], operator.get(f"{here}m/messages/")["Cache-Control"])
document = viewer.get("/api/v1/schema/?format=json").json()
paths = {path.removeprefix("/api/v1/").partition("/")[0] for path in document["paths"]}
print(document["info"]["title"], *sorted(paths))
print(*sorted(name for name in document["components"]["schemas"] if name.endswith("Request"))[:3])
(blank,) = [found for found in run_checks() if found.id.startswith("chatmemory")]
print(blank.msg)
"""


def test_a_project_with_default_rest_framework_settings():
    """It needs credentials, and the document has none of the project's own endpoints."""
    found = subprocess.run(
        [sys.executable, "-c", PROJECT], capture_output=True, text=True, cwd=ROOT
    )
    assert found.stdout.splitlines() == [
        "401 application/problem+json",
        "401 401",
        "403 application/problem+json",
        "200 200",
        "201 application/json",
        "200 200",
        "415",
        "Conversation already exists",
        'the body is larger than 2 MB, the limit of CHATMEMORY["POST_BYTES"]',
        "Length required",
        "no-store no-store",
        "chatmemory memories search_history store",
        "AddRequest ChangeMemoryRequest CompactRequest",
        "/api/docs/ is a blank page: it takes its scripts from 'drf_spectacular_sidecar'.",
    ], found.stderr
