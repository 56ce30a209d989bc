"""The rights of people who manage accounts, and a limit for attempts with wrong passwords."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.apps import apps as installed
from django.apps.registry import Apps
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from chatmemory.roles import GROUPS, Role, has_accounts

ACCOUNTS_PER_ADDRESS = 10
_ACCOUNT_PERMISSIONS = ("add_user", "change_user", "delete_user", "view_user")


def let_admins_manage(using: str, apps: Apps = installed, **_: object) -> None:
    """Give the group of admins the permissions to manage accounts in the database `using`. Nothing
    happens if this database does not have the tables of accounts.
    """
    if not has_accounts(using, apps):
        return
    create_permissions(installed.get_app_config("auth"), verbosity=0, using=using)
    permissions = Permission.objects.using(using).filter(
        content_type__app_label="auth", codename__in=_ACCOUNT_PERMISSIONS
    )
    group, _is_new = Group.objects.using(using).get_or_create(name=GROUPS[Role.ADMIN])
    group.permissions.add(*permissions)


def client_address(request: HttpRequest) -> str | None:
    """Return the client's IP address; None if the proxy sent no valid address."""
    with suppress(ValueError):
        return str(ip_address(request.META.get("REMOTE_ADDR", "")))
    return None


def without_parameters(sender: object, instance: AccessAttempt, **_: object) -> None:
    """Remove the URL parameters and form fields from a failed sign-in that is about to be stored.
    The parameter `next` is the requested page, and may contain somebody's search words.
    """
    instance.get_data = instance.post_data = ""


def forget_old_sign_ins(sender: object, **_: object) -> None:
    """Delete the failed sign-ins that no longer count towards a lock, when the command `vacuum`
    runs. Each sign-in also deletes them.
    """
    earliest = timezone.now() - settings.AXES_COOLOFF_TIME
    AccessAttempt.objects.filter(attempt_time__lte=earliest).delete()


def forget_old_sessions(sender: object, **_: object) -> None:
    """When the command `vacuum` runs, delete the expired sessions, as Django's command
    clearsessions does.
    """
    SessionStore.clear_expired()


def too_many_sign_ins(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Return the page with status 429 that is shown after repeated wrong passwords. Retry-After has
    the seconds until sign-in is possible again.
    """
    cooloff = int(settings.AXES_COOLOFF_TIME.total_seconds())
    response = render(
        request, "inspector/accounts/too_many_sign_ins.html", {"minutes": cooloff // 60}, status=429
    )
    response["Retry-After"] = str(cooloff)
    return response


class SignInLimit(AxesDatabaseHandler):  # type: ignore[misc]  # the library has no types
    """Locks sign-in after wrong passwords.

    After AXES_FAILURE_LIMIT failures, an account is locked for the client's address. So colleagues
    behind one address do not lock each other out. After ten times as many failures, the address is
    locked for all accounts. If the client's address is unknown, because its proxy is not trusted,
    failures are counted by account only.
    """

    def get_failures(self, request: HttpRequest, credentials: dict[str, str] | None = None) -> int:
        by_account, by_address = (
            attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        )
        if request.axes_ip_address is None:  # type: ignore[attr-defined]  # set by Axes
            return int(by_account)
        return int(max(by_account, by_address // ACCOUNTS_PER_ADDRESS))
