"""Django's settings for the inspector and the API.

Differences between installations come from environment variables, which docs/operations.md lists.
The sections go from the installed applications to logs, metrics and traces.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.core.management.utils import get_random_secret_key
from platformdirs import user_data_path

import inspector
from inspector.project.environment import (
    DatabaseSettings,
    bounds,
    check_production,
    database,
    earlier_secrets,
    env,
    flag,
    folder,
    hosts,
    log_style,
    number,
    origins,
    rate,
    redis,
)
from inspector.shell.logs import logging_settings

ROOT = Path(__file__).resolve().parents[2]
IS_CHECKOUT = (ROOT / "manage.py").exists()  # else the package has the templates
VAR = folder("CHATMEMORY_VAR", ROOT / "var" if IS_CHECKOUT else user_data_path("chatmemory"))
DEBUG = flag("CHATMEMORY_DEBUG")
PRODUCTION = flag("CHATMEMORY_PRODUCTION")


# Applications and middleware

INSTALLED_APPS = [
    "chatmemory",
    "inspector",
    *inspector.ROOMS,
    "inspector.project",
    "inspector.project.apps.Admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "inspector.project.static_files.StaticFiles",
    "django.middleware.gzip.GZipMiddleware",  # with random padding against BREACH
    *inspector.MIDDLEWARE,
    "django.contrib.sessions.middleware.SessionMiddleware",
    "inspector.project.apps.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "inspector.project.urls"
ASGI_APPLICATION = "inspector.project.asgi.application"


# Database

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # a commit survives a power failure
    "PRAGMA secure_delete = ON",  # erased bytes are overwritten
)
DATABASE_FILE = VAR / "chatmemory.sqlite3"  # unless DATABASE_URL names another database
LOCK_SECONDS = number("CHATMEMORY_LOCK_SECONDS", 20, minimum=1, maximum=10**6)
CONNECTIONS = number("CHATMEMORY_CONNECTIONS", 4, minimum=2)
CONNECT_SECONDS = 2


def make_private(file: Path) -> None:
    """Create the database file if it is missing. No other user of the machine can read the new
    file.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # the folder is read-only: opening the database will fail
        file.touch(mode=0o600)


def _database() -> DatabaseSettings:
    settings = database("DATABASE_URL", f"sqlite:///{DATABASE_FILE}")
    if settings["ENGINE"].endswith("sqlite3"):
        file = Path(settings["NAME"])
        if file.exists() and os.statvfs(file).f_flag & os.ST_RDONLY:
            # On a read-only file system nothing changes, and SQLite cannot make a log beside the
            # file
            settings["NAME"] = f"{file.resolve().as_uri()}?immutable=1"
            settings["OPTIONS"] = {"init_command": "PRAGMA query_only = ON"}
            return settings
        if settings["NAME"] != ":memory:":
            make_private(file)
        settings["OPTIONS"] = {
            # SQLite has one writer at a time. A transaction that takes the lock at BEGIN waits for
            # it; one that takes it later fails at once if another has written meanwhile.
            "transaction_mode": "IMMEDIATE",
            "timeout": LOCK_SECONDS,
            "init_command": "; ".join(PRAGMAS),
        }
    else:
        settings["CONN_HEALTH_CHECKS"] = True  # lost connections are replaced
        options = settings.setdefault("OPTIONS", {})
        options["options"] = f"{options.get('options', '')} -c lock_timeout={LOCK_SECONDS}s".strip()
        options.setdefault("connect_timeout", CONNECT_SECONDS)
        options.setdefault("application_name", "chatmemory")
        options["pool"] = {
            "min_size": 0,
            "max_size": CONNECTIONS + 1,  # one for what live streams read
            "timeout": CONNECT_SECONDS,
            "reconnect_timeout": CONNECT_SECONDS,  # the next request tries again
        }
    return settings


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


# Hosts, secret key and browser security

ALLOWED_HOSTS = hosts("CHATMEMORY_HOSTS", "localhost", "127.0.0.1", "[::1]")
FOR_MONITORS = ("/healthz", "/readyz", "/metrics")  # with any host, and over plain HTTP
CSRF_TRUSTED_ORIGINS = origins("CHATMEMORY_ORIGINS")
if PRODUCTION:
    check_production(DEBUG, ALLOWED_HOSTS)


def local_secret() -> str:
    """Return the secret key of this installation. The first start generates this key."""
    file = VAR / "secret_key"
    if not file.exists():
        VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
        # If several first starts run at once, the first one to link its key decides for all.
        with NamedTemporaryFile("w", dir=VAR) as draft:
            draft.write(get_random_secret_key())
            draft.flush()
            with suppress(FileExistsError):
                os.link(draft.name, file)
    return file.read_text()


SECRET_KEY = env.str("CHATMEMORY_SECRET_KEY", "") or local_secret()
SECRET_KEY_FALLBACKS = earlier_secrets("CHATMEMORY_SECRET_KEY_FALLBACKS")

SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "inspector.views.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
if PRODUCTION:  # HTTPS everywhere
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [rf"^{path[1:]}$" for path in FOR_MONITORS]
    SECURE_HSTS_SECONDS = number("CHATMEMORY_HSTS_SECONDS", 365 * 24 * 3600)
    # This site must not decide about other sites of its domain
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = flag("CHATMEMORY_HSTS_SUBDOMAINS")
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    if flag("CHATMEMORY_PROXY"):  # the proxy's header that tells HTTPS
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


# Signing in

LOGIN_URL = "inspector:sign-in"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Within 15 minutes, ten wrong passwords for an account lock it for their address, and a hundred for
# any accounts lock the address. A successful sign-in in between does not reset the count.
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address"]
AXES_CLIENT_IP_CALLABLE = "inspector.project.accounts.client_address"
AXES_HANDLER = "inspector.project.accounts.SignInLimit"
AXES_LOCKOUT_CALLABLE = "inspector.project.accounts.too_many_sign_ins"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]


# Pages and static files

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"] if IS_CHECKOUT else [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [ROOT / "static"] if IS_CHECKOUT else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "inspector.project.static_files.CollectedFiles"},
}
SERVESTATIC_AUTOREFRESH = SERVESTATIC_USE_FINDERS = DEBUG


# API

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_THROTTLE_RATES": {
        "caller": rate("CHATMEMORY_API_RATE", "1000/second"),
        "stranger": rate("CHATMEMORY_STRANGER_RATE", "100/minute"),
        "form": rate("CHATMEMORY_FORM_RATE", "300/minute"),
        "playground": rate("CHATMEMORY_PLAYGROUND_RATE", "600/minute"),
    },
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
CHATMEMORY: dict[str, object] = {
    **bounds("CHATMEMORY", "WINDOW_MESSAGES", "WINDOW_BYTES", "TEXT_CHARACTERS", "MEDIA_BYTES"),
    **bounds("CHATMEMORY", "TOKEN_DAYS"),
    **bounds("CHATMEMORY", "POST_BYTES", "PUT_BYTES", "ADDED_MESSAGES", "LISTED_MESSAGES"),
}
DATA_UPLOAD_MAX_MEMORY_SIZE = CHATMEMORY.get("PUT_BYTES", 4 * 2**20)


# Caches


def _counts() -> dict[str, object]:
    """Return the cache that counts requests: Redis, or the memory of this process."""
    if url := redis("REDIS_URL"):
        seconds = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
        backend = "django.core.cache.backends.redis.RedisCache"
        return {"BACKEND": backend, "LOCATION": url, "KEY_PREFIX": "chatmemory", "OPTIONS": seconds}
    return {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "chatmemory",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }


REDIS_SECONDS = 0.2  # a request waits no longer for its count
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "chatmemory": _counts(),
}


# Logs, metrics and traces

LOG = log_style()
LOGGING = logging_settings(LOG, log_changes=PRODUCTION or LOG == "json")
INSPECTOR: dict[str, object] = {
    "METRICS_TOKEN": env.str("CHATMEMORY_METRICS_TOKEN", ""),
    "DISK_FREE_MB": number("CHATMEMORY_DISK_FREE_MB", 100),
    "TRACES": flag("CHATMEMORY_OTEL"),
    "LESSONS": env.str("CHATMEMORY_LESSONS", ""),
    "EMBED": origins("CHATMEMORY_EMBED"),
    "PRICES": env.dict("CHATMEMORY_PRICES", {}),
    "MANAGE": "python manage.py" if IS_CHECKOUT else "chatmemory",
    "WHOLE_SITE": True,
    **bounds("INSPECTOR", "OPEN_FORM_BYTES", "FORM_BYTES", "MESSAGES_FORM_BYTES", "UPLOAD_BYTES"),
}
