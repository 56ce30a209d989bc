from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

import chatmemory.addresses  # noqa: F401  (registers <memory:…>)
from inspector.views import (
    accounts,
    conversation,
    export,
    health,
    imports,
    overview,
    simulate,
)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("c/<memory:memory_id>/", conversation.conversation, name="conversation"),
    path("c/<memory:memory_id>/live/", conversation.live, name="live"),
    path("c/<memory:memory_id>/simulate/", simulate.simulate, name="simulate"),
    path("c/<memory:memory_id>/add/", simulate.add, name="add"),
    path("c/<memory:memory_id>/export/", export.export, name="export"),
    path("import/", imports.import_file, name="import"),
    path("demo/", overview.add_demo, name="demo"),
    path("sign-in/", LoginView.as_view(template_name="inspector/sign_in.html"), name="sign-in"),
    path("sign-in/<str:token>/", accounts.sign_in_by_link, name="sign-in-by-link"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("theme/", accounts.theme, name="theme"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]
