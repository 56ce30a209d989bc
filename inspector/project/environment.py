"""Reads environment variables with the package environs, and checks their values.

An invalid value stops the start. The error names the variable, but not the value, which may hold a
password. An empty value does not count as unset: it must be valid, too.

The package django-environ is not used, because it reads a misspelt flag as false. A misspelt value
of CHATMEMORY_PRODUCTION would then start the site without HTTPS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environs import Env, ValidationError, validate

env = Env()

SECRET_LENGTH = 50
SECRET_CHARACTERS = 5

address = validate.Length(min=1, error="must be an address and port, or unix:/path")
_RATE = validate.Regexp(
    r"[1-9]\d{0,8}/(second|minute|hour|day)\Z", error="must be a rate such as 100/second"
)
_DATABASE_URL = validate.Regexp(
    r"(sqlite|postgres|postgresql)://.", error="must begin with sqlite:/// or postgresql://"
)
_REDIS_URL = validate.Regexp(
    r"(rediss?|unix)://.|\Z", error="must begin with redis://, rediss:// or unix://"
)
_HOST = validate.Regexp(
    r"(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+)\Z",
    error="must be host names such as memory.example.org, without https:// and without a port",
)
_ORIGIN = validate.Regexp(
    r"https?://[^\s/]+\Z", error="must be origins such as https://memory.example.org"
)


def flag(name: str) -> bool:
    """Return True if an environment variable is 1, and False if it is 0 or unset."""
    return env.str(name, "0", validate=validate.OneOf(("0", "1"), error="must be 0 or 1")) == "1"


def log_style() -> str:
    """Return the value of CHATMEMORY_LOG: `text` (the default) or `json`. Both the server and the
    settings need this value.
    """
    return env.str("CHATMEMORY_LOG", "text", validate=validate.OneOf(("text", "json")))


def number(name: str, default: int, minimum: int = 0, maximum: int = 10**9) -> int:
    """Return the whole number in an environment variable, or the default if the variable is unset.
    The number must be from `minimum` to `maximum`.
    """
    return env.int(name, default, validate=validate.Range(minimum, maximum))


def bounds(app: str, *names: str) -> dict[str, int]:
    """Return the whole numbers in environment variables, such as size limits, by name. Unset
    variables are left out.

    `bounds("CHATMEMORY", "PUT_BYTES")` reads the variable CHATMEMORY_PUT_BYTES, and returns
    `{"PUT_BYTES": 1000}` if its value is 1000.
    """
    return {name: env.int(f"{app}_{name}") for name in names if f"{app}_{name}" in os.environ}


def rate(name: str, default: str) -> str:
    """Return the rate in an environment variable, in REST framework's notation such as
    `100/second`; the default if the variable is unset.
    """
    return env.str(name, default, validate=_RATE)


def earlier_secrets(name: str) -> list[str]:
    """Return the earlier secret keys from a variable that lists them with commas between them; []
    if the variable is unset.
    """
    long = validate.Length(
        min=SECRET_LENGTH,
        error=f"must be secret keys of at least {SECRET_LENGTH} characters, separated by commas",
    )
    return list(env.list(name, [], subcast=str.strip, validate=_each(long)))


def redis(name: str) -> str:
    """Return the URL of a Redis server from an environment variable, or "" if the variable is
    unset. A URL is refused if the extra `redis` is not installed.
    """
    return env.str(name, "", validate=[_REDIS_URL, _has_a_port, _is_installed])


def _has_a_port(url: str) -> None:
    try:
        port = urlsplit(url).port
    except ValueError as error:
        raise ValidationError("has a port that is not a number from 1 to 65535") from error
    if port == 0:
        raise ValidationError("has the port 0: use a port from 1 to 65535")


def _is_installed(url: str) -> None:
    if url and find_spec("redis") is None:
        raise ValidationError(
            "needs the package redis, which is not installed: pip install '.[redis]' in a checkout"
        )


def folder(name: str, default: Path) -> Path:
    """Return the path of a folder from an environment variable, or the default if the variable is
    unset.
    """
    named = validate.Length(min=1, error="must name a folder")
    return Path(env.str(name, str(default), validate=named))


def hosts(name: str, *default: str) -> list[str]:
    """Return the host names from an environment variable, which lists them separated by commas.
    Return the default names if the variable is unset.
    """
    some = validate.Length(min=1, error="must name at least one host")
    return list(env.list(name, default, subcast=str.strip, validate=[some, _each(_HOST)]))


def origins(name: str) -> list[str]:
    """Return origins, such as `https://memory.example.org`, from an environment variable, which
    lists them separated by commas. Return [] if the variable is unset.
    """
    return list(env.list(name, [], subcast=str.strip, validate=_each(_ORIGIN)))


def networks(name: str, default: str) -> list[str]:
    """Return IP addresses and networks, such as `10.0.0.0/8`, from an environment variable, which
    lists them separated by commas. Return a list with the default if the variable is unset.
    """
    return list(env.list(name, [default], validate=_each(_is_network)))


def _each(check: Callable[[str], object]) -> Callable[[list[str]], None]:
    def check_each(values: list[str]) -> None:
        for value in values:
            check(value)

    return check_each


def _is_network(name: str) -> None:
    try:
        ip_network(name)
    except ValueError as error:
        raise ValidationError(
            "must be IP addresses or networks such as 10.0.0.0/8, separated by commas"
        ) from error


DatabaseSettings = dict[str, Any]  # each key has a type of its own


def database(name: str, default: str) -> DatabaseSettings:
    """Return the settings of a SQLite or PostgreSQL database, as an entry of Django's DATABASES. An
    environment variable has the URL of the database. The default URL is used if the variable is
    unset.
    """
    env.str(name, default, validate=_DATABASE_URL)
    return dict(env.dj_db_url(name, default))


def check_production(debug: bool, hosts: Sequence[str]) -> None:
    """Raise ImproperlyConfigured if the secret key, `debug` or the allowed `hosts` make the site
    unsafe in production. The error names the environment variable that must change.
    """
    secret = env.str("CHATMEMORY_SECRET_KEY", "")
    if len(secret) < SECRET_LENGTH or len(set(secret)) < SECRET_CHARACTERS:
        raise ImproperlyConfigured(
            f"CHATMEMORY_SECRET_KEY must be a secret of at least {SECRET_LENGTH} random characters"
        )
    if secret.startswith("django-insecure-"):
        raise ImproperlyConfigured(
            "CHATMEMORY_SECRET_KEY is an insecure example key of Django: set it to random "
            "characters of your own"
        )
    if debug:
        raise ImproperlyConfigured(
            "CHATMEMORY_DEBUG is 1, so error pages show secrets: unset it in production"
        )
    is_open = any("*" in host or host.startswith(".") for host in hosts)
    if not env.str("CHATMEMORY_HOSTS", "") or is_open:
        raise ImproperlyConfigured(
            "CHATMEMORY_HOSTS must list each host name of this site in full: no name may contain "
            "* or begin with a dot"
        )
