"""The OpenAPI document, and a Swagger page that shows it."""

from __future__ import annotations

from django.apps import apps
from django.templatetags.static import static
from django.urls import URLResolver, include, path, reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from chatmemory.api.guard import Guarded
from chatmemory.messages.json_values import JsonDict, JsonValue

_INFO: JsonDict = {
    "title": "chatmemory",
    "version": "1",
    "description": "Chat memory with LangChain4j's semantics, the whole history and a ledger.",
    "license": {"name": "MIT", "identifier": "MIT"},
}
_ABOUT = {
    "info": _INFO,
    "tags": [
        {"name": "memories", "description": "Conversations: their windows, histories and steps."},
        {"name": "calls", "description": "Model calls that could not be stored."},
        {"name": "doctor", "description": "Which windows providers would reject."},
        {
            "name": "recall",
            "description": (
                "The share of needed facts that policies would have held, and the cost of "
                "their prompts."
            ),
        },
        {
            "name": "search_history",
            "description": "Search of a conversation's history, as a tool for its model.",
        },
        {"name": "store", "description": "The ChatMemoryStore protocol of LangChain4j."},
    ],
}


class Generator(SchemaGenerator):
    """Generates the OpenAPI document from only the routes of this API, wherever they are
    mounted.
    """

    def get_schema(self, request: object = None, public: bool = False) -> JsonValue:
        schema = super().get_schema(request, public)  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
        prefix, _ = _mounted_at()
        server = {"url": prefix, "description": "The host that served this document."}
        return schema | _ABOUT | {"servers": [server]}


def _mounted_at() -> tuple[str, str]:
    """Return the URL of the server and the beginning of all paths, from the URL of the API:

        /ops/chat/api/ -> "/ops/chat", "api/"
        /llm/          -> "/llm", ""

    The beginning is "api/" if the URL of the API ends in that.
    """
    root = reverse("chatmemory:schema").removesuffix("v1/schema/")
    above, slash, _ = root.rpartition("/api/")
    return (above or "/", "api/") if slash and root.endswith("/api/") else (root[:-1] or "/", "")


class Schema(Guarded, SpectacularAPIView):
    """The API as an OpenAPI document."""

    schema = None  # type: ignore[assignment]  # it does not describe itself
    api_version = _INFO["version"]  # not the caller's choice, which would go into a header
    generator_class = Generator
    custom_settings = {"COMPONENT_SPLIT_PATCH": False, "OAS_VERSION": "3.1.1"}

    @property
    def patterns(self) -> list[URLResolver]:  # type: ignore[override]  # narrower than the base class
        _, beginning = _mounted_at()
        return [path(beginning, include("chatmemory.api.urls"))]


class Docs(Guarded, SpectacularSwaggerSplitView):
    """A Swagger page that shows the API."""

    schema = None  # type: ignore[assignment]  # REST framework's types know no view without a schema
    title = _INFO["title"]
    url_name = "chatmemory:schema"

    @property
    def template_name(self) -> str:  # type: ignore[override]  # narrower than the base class
        """The name of the page's template. If the inspector is installed, this is a template of the
        inspector, with its top bar.
        """
        has_inspector = apps.is_installed("inspector")
        return "inspector/shared/api.html" if has_inspector else "drf_spectacular/swagger_ui.html"

    @staticmethod
    def _swagger_ui_resource(filename: str) -> str:
        return static(f"drf_spectacular_sidecar/swagger-ui-dist/{filename}")

    @staticmethod
    def _swagger_ui_favicon() -> str:
        return static("drf_spectacular_sidecar/swagger-ui-dist/favicon-32x32.png")
