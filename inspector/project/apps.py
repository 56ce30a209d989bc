from __future__ import annotations

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate, pre_save

from chatmemory.signals import compacting


class ProjectConfig(AppConfig):
    """What only this project does, and none that mounts the pages: accounts and their limits."""

    name = "inspector.project"
    label = "inspector_project"

    def ready(self) -> None:
        from inspector.project import accounts, sign_in_limit

        compacting.connect(sign_in_limit.forget_expired, dispatch_uid="inspector.sign_ins")
        pre_save.connect(
            sign_in_limit.without_parameters, "axes.AccessAttempt", dispatch_uid="inspector.sign_in"
        )
        post_migrate.connect(accounts.let_admins_manage, sender=apps.get_app_config("auth"))
