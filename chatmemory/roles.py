"""The three roles of accounts and API tokens, as Django permissions; and the names of actors, who
make changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.db import router
from django.db.models import TextChoices

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, PermissionsMixin

READ = "chatmemory.view_memory"
WRITE = "chatmemory.change_memory"
ERASE = "chatmemory.delete_memory"
GIVE_TOKENS = "chatmemory.add_apitoken"


class Role(TextChoices):
    """The role of an account or token. A viewer reads and simulates, an operator also writes, and
    an admin may do everything.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


GRANTS: dict[str, frozenset[str]] = {
    Role.VIEWER: frozenset({READ}),
    Role.OPERATOR: frozenset({READ, WRITE}),
    Role.ADMIN: frozenset({READ, WRITE, ERASE, GIVE_TOKENS}),
}
GROUPS: dict[str, str] = {
    Role.VIEWER: "Viewers",
    Role.OPERATOR: "Operators",
    Role.ADMIN: "Admins",
}
_OF_ADMINS = ("view_auditentry",)


def has_accounts(using: str, apps: Apps) -> bool:
    """Return whether a database has the tables of user accounts. They are missing if `migrate
    chatmemory` runs before `migrate`.

    `apps` has the models that are migrated so far.
    """
    group = apps.all_models["auth"].get("group")
    return group is not None and router.allow_migrate_model(using, group)


def make_groups(using: str, apps: Apps = installed, **_: object) -> None:
    """Create a group of users for each role, such as "Viewers", in a database with accounts.

    Permissions that somebody added to a group stay. An existing group with the same name as a
    role's group, but without permissions of chatmemory, belongs to the project. It is not changed.
    """
    from django.contrib.auth.management import create_permissions

    if not has_accounts(using, apps):
        return
    create_permissions(installed.get_app_config("chatmemory"), verbosity=0, using=using)
    group_model, permission_model = (
        installed.get_model("auth", name) for name in ("Group", "Permission")
    )
    for role, name in GROUPS.items():
        names = [grant.partition(".")[2] for grant in GRANTS[role]]
        names += _OF_ADMINS if role == Role.ADMIN else ()
        permissions = permission_model.objects.using(using).filter(
            content_type__app_label="chatmemory", codename__in=names
        )
        group, is_new = group_model.objects.using(using).get_or_create(name=name)
        if is_new or group.permissions.filter(content_type__app_label="chatmemory").exists():
            group.permissions.add(*permissions)


def roles_within(user: PermissionsMixin | AnonymousUser) -> list[Role]:
    """Return the roles that a user may give to others: those whose permissions the user has."""
    return [role for role in Role if all(user.has_perm(grant) for grant in GRANTS[role])]


def actor_of(request: Any) -> str:  # of Django, or of the REST framework
    """Return the name of the user who makes a request, as text."""
    return str(request.user.get_username())
