"""What is sent to each form of the site on a cluster; tests/test_roles.py misses none."""

from __future__ import annotations

from typing import Any

DRAFT = {"role": "user", "text": "And now?", "at": "3"}
COMPACTED = {"summary": "So far.", "step": "4", "first": "1", "last": "2", "append_terms": "10"}
# The conversation of some forms, where it is not "m"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "repair": {"memory_id": "torn"},
    "undo-repair": {"memory_id": "repaired", "step": 4},
}
POSTS: dict[str, list[dict[str, Any]]] = {
    "bulk": [
        {"action": "export", "id": "m"},
        {"action": "label", "id": ["m", "other"], "label_as_text": "team:support"},
        {"action": "delete", "id": ["m", "other"]},
        {"action": "delete", "id": ["m", "other"], "confirmed": "1"},
    ],
    "pin": [{}, {"pinned": "no"}],
    "evidence-file": [{"kinds": "mail", "download": "1"}],
    "redact": [{}, {"confirmed": "1", "branch": "branch"}],
    "simulate": [DRAFT],
    "index-term": [{}],
    "compact": [COMPACTED, COMPACTED | {"store": "1"}],
    "repair": [{"provider": "openai", "version": "3"}],
    "undo-repair": [{}],
    "repair-many": [{"rule": "dangling_call"}, {"versions": '{"torn": 3}'}],
    "raise-limits": [{}, {"policies": '{"torn": ["message_window:9", 3]}'}],
    "undo-many": [{"steps": '{"repaired": 4}'}],
    "doctor-error": [{"error": "Overloaded"}],
    "doctor-providers": [{"providers": ["openai"], "beginning": "acme/"}],
    "doctor-providers-forget": [{"beginning": "acme/"}],
    "verdict": [DRAFT],
    "add": [DRAFT],
    "branch": [DRAFT | {"new_id": "new"}],
    "adopt": [
        {"policy": "message_window:2"},
        {"policy": "message_window:2", "confirmed": "1"},
    ],
    "settings": [{"kind": "message_window", "limit": "2"}],
    "change": [{"kind": "message_window", "limit": "2"}],
    "lab": [{}, {"kind": "message_window"}],
    "adopt-for-many": [
        {"kind": "message_window", "limit": "2"},
        {"kind": "message_window", "limit": "2", "confirmed": "1"},
    ],
    "lab-fix": [{}, {"confirmed": "1"}],
    "calls-intake": [{}],
    "redact-sent": [{}],
    "import": [{"file": ..., "format": "auto", "kind": "message_window", "limit": "20"}],
    "demo": [{}],
    "playground": [{"script": "user: hello"}],
    "mute": [{"flag": "user_repeated"}],
    "policies": [{"beginning": "acme/", "policy": "message_window:5"}],
    "remove-policy": [{"prefix": "acme/"}],
    "tokens": [{"name": "one", "role": "viewer"}],
    "revoke-token": [{}],
    "sign-in": [{"username": "nobody", "password": "wrong"}],
    "theme": [{"theme": "dark"}],
    "display": [{"switch": "type"}],
    "end-tour": [{}],
}
