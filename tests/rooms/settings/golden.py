"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import Form, State

LOWER: Form = {
    "kind": "message_window",
    "limit": "3",
    "options_of": "message_window",
    "name": "team",
    "value": "support",
}
STATES = {
    "order-settings": State("/c/order-7741/settings/"),
    "lowered-settings-preview": State("/c/lowered/settings/", form=LOWER),
    "policies": State("/policies/"),
    "policies-viewer": State("/policies/", by="viewer"),
    "tokens": State("/tokens/"),
}
