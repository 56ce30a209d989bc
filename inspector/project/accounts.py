"""Who manages accounts."""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import router

from chatmemory.access.roles import GROUPS, Role

_NAMES = ("add_user", "change_user", "delete_user", "view_user")


def let_admins_manage(using: str, **_: object) -> None:
    """Let the group of admins manage accounts, in the database that has them."""
    if not router.allow_migrate_model(using, Group):
        return
    create_permissions(apps.get_app_config("auth"), verbosity=0, using=using)
    wanted = Permission.objects.using(using).filter(
        content_type__app_label="auth", codename__in=_NAMES
    )
    group, _made = Group.objects.using(using).get_or_create(name=GROUPS[Role.ADMIN])
    group.permissions.add(*wanted)
