"""The applications of our own project, and what they connect."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.db.models.signals import post_migrate, pre_save
from django.http import HttpRequest, HttpResponse
from django.utils.translation import override

from chatmemory.signals import compacting


class ProjectConfig(AppConfig):
    """What only this project does, and none that mounts the pages: accounts and their limits."""

    name = "inspector.project"
    label = "inspector_project"

    def ready(self) -> None:
        from inspector.project import accounts

        compacting.connect(accounts.forget_expired, dispatch_uid="inspector.sign_ins")
        pre_save.connect(
            accounts.without_parameters, "axes.AccessAttempt", dispatch_uid="inspector.sign_in"
        )
        post_migrate.connect(accounts.let_admins_manage, sender=apps.get_app_config("auth"))


class Admin(admin_apps.AdminConfig):
    default = False  # the application of this module is ProjectConfig
    default_site = "inspector.project.apps.AdminSite"


class AdminSite(admin.AdminSite):
    """Pages have no language (see InspectorMiddleware), and the admin's scripts need one."""

    def i18n_javascript(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with override("en"):
            return super().i18n_javascript(request, extra_context)
