"""Settings of the inspector's project. Everything that differs between places comes from the
environment.

DATABASE_URL            sqlite:///path or postgresql://user@host/name; default: a file under var/
CHATMEMORY_SECRET_KEY   required in production; a local one is made once under var/
CHATMEMORY_PRODUCTION   1 where others can reach it: HTTPS only, and no start without a secret and
                        named hosts (see production.py)
CHATMEMORY_PROXY        1 behind a proxy that sets X-Forwarded-Proto and X-Forwarded-For
CHATMEMORY_HSTS_SECONDS how long browsers insist on HTTPS; default a year
CHATMEMORY_API_RATE     requests per token or user, such as 100/second; default 1000/second
CHATMEMORY_HOSTS        comma-separated host names this site answers to
CHATMEMORY_ORIGINS      comma-separated https:// origins that may post forms (behind a proxy)
CHATMEMORY_LOCK_SECONDS how long a write waits for others before it is answered 503; default 20
CHATMEMORY_DEBUG        1 for Django's debug pages
CHATMEMORY_LOG          json, or text (the default); see docs/operations.md
CHATMEMORY_OTEL         1 to send traces, with the extra `otel`
CHATMEMORY_METRICS_TOKEN  who shows it may read /metrics; without one only this machine may
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.core.management.utils import get_random_secret_key

from inspector.observability.logs import logging_settings
from inspector.project import environment, production

ROOT = Path(__file__).resolve().parents[2]
VAR = Path(os.environ.get("CHATMEMORY_VAR", ROOT / "var"))

DEBUG = environment.flag(os.environ, "CHATMEMORY_DEBUG")
ALLOWED_HOSTS = os.environ.get("CHATMEMORY_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [o for o in os.environ.get("CHATMEMORY_ORIGINS", "").split(",") if o]


def _local_secret() -> str:
    """A key made once for this checkout, readable by its owner only."""
    file = VAR / "secret_key"
    if not file.exists():
        VAR.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(get_random_secret_key())
    return file.read_text()


PRODUCTION = environment.flag(os.environ, "CHATMEMORY_PRODUCTION")
if PRODUCTION:
    production.check(os.environ, DEBUG, ALLOWED_HOSTS)

SECRET_KEY = os.environ.get("CHATMEMORY_SECRET_KEY") or _local_secret()

INSTALLED_APPS = [
    "chatmemory",
    "inspector",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "inspector.middleware.observability.ObservabilityMiddleware",
    "csp.middleware.CSPMiddleware",
    "inspector.middleware.headers.PermissionsPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "inspector.middleware.append_slash.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "inspector.middleware.login_required.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "inspector.middleware.not_found.NotFoundMiddleware",
]

# At most ten wrong passwords in a quarter of an hour from one address, for one account or for many;
# signing in with an account of one's own in between forgives nothing.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = ["ip_address"]
AXES_LOCKOUT_CALLABLE = "inspector.views.errors.too_many_sign_ins"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

ROOT_URLCONF = "inspector.project.urls"
ASGI_APPLICATION = "inspector.project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "inspector.context_processors.theme",
            ],
        },
    },
]


PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
)
LOCK_SECONDS = environment.seconds(os.environ, "CHATMEMORY_LOCK_SECONDS", 20)


def _database() -> dict[str, Any]:
    file = f"sqlite:///{VAR / 'chatmemory.sqlite3'}"
    url = environment.database_url(os.environ, "DATABASE_URL", default=file)
    database: dict[str, Any] = dict(dj_database_url.parse(url))
    if database["ENGINE"].endswith("sqlite3"):
        Path(database["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        # One writer at a time: take the lock at BEGIN, wait for it, and never lose a commit. What
        # is erased is overwritten.
        database["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": LOCK_SECONDS,
            "init_command": "; ".join(PRAGMAS),
        }
    else:
        database["CONN_MAX_AGE"] = 60
        database["CONN_HEALTH_CHECKS"] = True
        options = database.setdefault("OPTIONS", {})
        options["options"] = f"{options.get('options', '')} -c lock_timeout={LOCK_SECONDS}s".strip()
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [ROOT / "static"]
# Served from the source folders, so that a first start needs no collectstatic; a deployment that
# has run it serves STATIC_ROOT.
SERVESTATIC_USE_FINDERS = not STATIC_ROOT.exists()
SERVESTATIC_AUTOREFRESH = DEBUG

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "inspector.views.errors.csrf_failure"

if PRODUCTION:
    globals().update(production.settings(os.environ))

X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    },
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["chatmemory.api.throttling.PerCaller"],
    "DEFAULT_THROTTLE_RATES": {
        "caller": environment.rate(os.environ, "CHATMEMORY_API_RATE", "1000/second")
    },
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "chatmemory",
    "DESCRIPTION": "Chat memory with LangChain4j's semantics, the whole history and a ledger.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024

LOG = environment.choice(os.environ, "CHATMEMORY_LOG", "text", "json")
LOGGING = logging_settings(LOG, log_changes=PRODUCTION or LOG == "json")
METRICS_TOKEN = os.environ.get("CHATMEMORY_METRICS_TOKEN", "")
OTEL = environment.flag(os.environ, "CHATMEMORY_OTEL")
