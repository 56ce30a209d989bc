"""Parts of the inspector's own project: its applications, its admin, and its redirects. Other
projects that mount the inspector do not have these parts.
"""

from __future__ import annotations

from functools import partial

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.db.models.signals import post_migrate, pre_save
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.middleware import common
from django.utils.translation import override

from chatmemory.signals import vacuuming


class ProjectConfig(AppConfig):
    """The Django application that connects the functions of `accounts` to signals, such as the
    signal of a failed sign-in that is about to be stored.
    """

    name = "inspector.project"
    label = "inspector_project"

    def ready(self) -> None:
        from inspector.project import accounts

        vacuuming.connect(accounts.forget_old_sign_ins, dispatch_uid="inspector.sign_ins")
        vacuuming.connect(accounts.forget_old_sessions, dispatch_uid="inspector.sessions")
        pre_save.connect(
            accounts.without_parameters, "axes.AccessAttempt", dispatch_uid="inspector.sign_in"
        )
        post_migrate.connect(accounts.let_admins_manage, sender=apps.get_app_config("auth"))


class Admin(admin_apps.AdminConfig):
    default = False  # the application of this module is ProjectConfig
    default_site = "inspector.project.apps.AdminSite"


class AdminSite(admin.AdminSite):
    """The admin site, which always serves Django's JavaScript translations in English. Their view
    needs an active language, and InspectorMiddleware deactivates the language.
    """

    def i18n_javascript(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        with override("en"):
            return super().i18n_javascript(request, extra_context)


class CommonMiddleware(common.CommonMiddleware):
    """Redirects, with status 308, to the URL with a trailing slash. After Django's 301, clients
    would repeat a POST as a GET.

    The URLs for monitors accept any host name, because load balancers, kubelets and Prometheus name
    the server by its IP address. This is safe: no response of these URLs contains the host name.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]  # narrower than the base class
        if request.path_info in settings.FOR_MONITORS:
            return None
        return super().process_request(request)

    response_redirect_class = staticmethod(  # type: ignore[assignment]  # a function in place of a class
        partial(HttpResponsePermanentRedirect, preserve_request=True)
    )
