"""Who may do what: three roles, as Django permissions, the same for accounts and for API tokens."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db.models import TextChoices

READ = "chatmemory.view_memory"
WRITE = "chatmemory.change_memory"
ERASE = "chatmemory.delete_memory"
GIVE_TOKENS = "chatmemory.add_apitoken"


class Role(TextChoices):
    """A viewer reads and simulates, an operator also writes, an admin also erases and lets in."""

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
_USERS = ("add_user", "change_user", "delete_user", "view_user")


def make_groups(using: str, **_: Any) -> None:
    """A group for each role, after every `migrate`; what someone added to one stays."""
    from django.contrib.auth.management import create_permissions

    for label in ("chatmemory", "auth"):
        create_permissions(apps.get_app_config(label), verbosity=0, using=using)
    group_model, permission_model = (
        apps.get_model("auth", name) for name in ("Group", "Permission")
    )
    for role, name in GROUPS.items():
        names = [grant.partition(".")[2] for grant in GRANTS[role]]
        names += _USERS if role == Role.ADMIN else ()
        wanted = permission_model.objects.using(using).filter(
            content_type__app_label__in=("chatmemory", "auth"), codename__in=names
        )
        group, _made = group_model.objects.using(using).get_or_create(name=name)
        group.permissions.add(*wanted)


def roles_within(user: Any) -> list[Role]:
    """The roles that allow nothing that `user` may not do: those that `user` can give."""
    return [role for role in Role if all(user.has_perm(grant) for grant in GRANTS[role])]
