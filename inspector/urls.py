from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
import inspector.installed  # noqa: F401  (refuses a project without the applications)
from inspector.access import read_required, write_required
from inspector.shell.rooms import urlpatterns as urlpatterns_of_rooms
from inspector.views import accounts, conversation, glossary, monitoring, overview

app_name = "inspector"
_conversation = "c/<memory:memory_id>/"

urlpatterns = [
    path("", read_required(overview.conversations), name="overview"),
    path("now/", read_required(overview.now), name="overview-now"),
    path("over-time/", read_required(overview.over_time), name="over-time"),
    path("c/", read_required(overview.open_conversation), name="open"),
    path("tour/end/", read_required(overview.end_tour), name="end-tour"),
    path("bulk/", read_required(overview.bulk), name="bulk"),
    path(_conversation, read_required(conversation.conversation), name="conversation"),
    path(f"{_conversation}pin/<int:seq>/", write_required(conversation.pin), name="pin"),
    path(
        f"{_conversation}index/<int:seq>/<int:number>/",
        write_required(conversation.index_term),
        name="index-term",
    ),
    path(f"{_conversation}compact/", write_required(conversation.compact), name="compact"),
    path("demo/", write_required(overview.add_demo), name="demo"),
    *urlpatterns_of_rooms(),
    path("sign-in/", accounts.SignIn.as_view(), name="sign-in"),
    path("sign-in/<str:token>/", accounts.sign_in_by_link, name="sign-in-by-link"),
    path("sign-out/", accounts.SignOut.as_view(), name="sign-out"),
    path("theme/", accounts.theme, name="theme"),
    path("display/", accounts.display, name="display"),
    path("glossary/", glossary.glossary, name="glossary"),
    path("healthz", monitoring.healthz, name="healthz"),
    path("readyz", monitoring.readyz, name="readyz"),
]
