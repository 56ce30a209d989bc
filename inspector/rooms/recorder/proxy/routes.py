"""Recognizes model calls by the paths of requests."""

from __future__ import annotations

from .patterns import declared_pattern

COMPLETIONS, RESPONSES, MESSAGES, GEMINI = "completions", "responses", "messages", "gemini"
# OpenAI's paths below any prefix: /v1, /openai/deployments/NAME (Azure), /v1beta/openai (Gemini)
_CALLS = {
    COMPLETIONS: declared_pattern(r"\A(?:.*/)?chat/completions"),
    RESPONSES: declared_pattern(r"\A(?:.*/)?responses"),
    MESSAGES: declared_pattern(r"\A(?:(?:.*/)?v\d+[a-z]*/)?messages"),
    GEMINI: declared_pattern(r"\A.*models/[^/:]+:(?:generateContent|streamGenerateContent)"),
}
_MODEL = declared_pattern(r"/(?:deployments/([^/]+)/|(?:models|tunedModels)/([^/:]+):)")
_WORD = declared_pattern(r"v\d+[a-z]*\d*|[A-Za-z._-]{1,32}")
_NAME = 100


def call_of_path(path: str) -> str:
    """Return which kind of model call a POST to this path is, such as "completions". Return "" if
    it is no model call.
    """
    plain = path.strip("/")
    return next((kind for kind, pattern in _CALLS.items() if pattern.fullmatch(plain)), "")


def model_of_path(path: str) -> str:
    """Return the model that a path names; for Azure, the deployment. "" if the path names no
    model.
    """
    found = _MODEL.search(path)
    return (found[1] or found[2]) if found else ""


def name_of(method: str, path: str) -> str:
    """Return the name under which an unrecorded request is counted, such as `POST
    /v1/files/…/content`. Parts of the path that look like IDs or model names become `…`.
    """
    return f"{method} {'/'.join(map(_plain, path.split('/')))}"[:_NAME]


def _plain(part: str) -> str:
    name, colon, action = part.partition(":")
    if not name or _WORD.fullmatch(part):
        return part
    return f"…:{action}" if colon and _WORD.fullmatch(action) else "…"
