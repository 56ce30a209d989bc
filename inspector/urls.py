from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from inspector.access import erases, gives_tokens, reads, writes
from inspector.views import (
    accounts,
    bulk,
    conversation,
    export,
    health,
    imports,
    metrics,
    overview,
    simulate,
    tokens,
)

_sign_in = LoginView.as_view(
    template_name="inspector/sign_in.html", http_method_names=["get", "head", "post"]
)
_one = "c/<memory:memory_id>/"

urlpatterns = [
    path("", reads(overview.overview), name="overview"),
    path("feed/", reads(overview.feed), name="feed"),
    path("live/", reads(conversation.live_overview), name="live-overview"),
    path("bulk/", reads(bulk.bulk), name="bulk"),
    path(_one, reads(conversation.conversation), name="conversation"),
    path(f"{_one}redact/<int:seq>/", erases(conversation.redact), name="redact"),
    path(f"{_one}live/", reads(conversation.live), name="live"),
    path(f"{_one}simulate/", reads(simulate.simulate), name="simulate"),
    path(f"{_one}add/", writes(simulate.add), name="add"),
    path(f"{_one}branch/", writes(simulate.branch), name="branch"),
    path(f"{_one}export/", reads(export.export), name="export"),
    path("import/", writes(imports.import_file), name="import"),
    path("demo/", writes(overview.add_demo), name="demo"),
    path("tokens/", gives_tokens(tokens.tokens), name="tokens"),
    path("tokens/<int:key>/revoke/", gives_tokens(tokens.revoke), name="revoke-token"),
    path("sign-in/", _sign_in, name="sign-in"),
    path("sign-in/<str:token>/", accounts.sign_in_by_link, name="sign-in-by-link"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("theme/", accounts.theme, name="theme"),
    path("healthz", health.healthz, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("readyz", health.readyz, name="readyz"),
]
