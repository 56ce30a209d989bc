"""The routes of the pages for settings."""

from django.urls import path

from inspector.access import read_required, token_management_required, write_required
from inspector.rooms.settings import views

_conversation = "c/<memory:memory_id>/"

urlpatterns = [
    path(f"{_conversation}settings/", read_required(views.settings), name="settings"),
    path(f"{_conversation}change/", write_required(views.change), name="change"),
    path("policies/", read_required(views.policies), name="policies"),
    path("policies/remove/", write_required(views.remove_policy), name="remove-policy"),
    path("mute/", write_required(views.mute_cause), name="mute"),
    path("tokens/", token_management_required(views.tokens), name="tokens"),
    path(
        "tokens/<int:key>/revoke/",
        token_management_required(views.revoke_token),
        name="revoke-token",
    ),
]
