"""How operations stand in the OpenAPI document, and fields that are not plain values."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ResolvedComponent

from chatmemory.api.components import FORMATTED_MESSAGES, MESSAGE, Schema, all_components, ref
from chatmemory.api.sent_messages import most_messages


class OperationSchema(AutoSchema):
    """Describes an operation, under the name of its resource wherever the API is mounted."""

    def get_summary(self) -> str:
        return self._documented()[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override]  # of REST framework's own schemas
        return self._documented()[2]

    def _documented(self) -> tuple[str, str, str]:
        """Return the first line of a handler's docstring, and what follows after a blank line."""
        return str(super().get_description()).partition("\n\n")

    def get_tags(self) -> list[str]:
        return [self.path.partition("/v1/")[2].partition("/")[0]]


class _NamedSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Adds the named schemas to a document in which such a field occurs."""

    schema: Schema

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Schema:
        for name, schema in all_components().items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name,
                ResolvedComponent.SCHEMA,
                schema,
                ComponentIdentity(name),  # type: ignore[no-untyped-call]
            )
            auto_schema.registry.register_on_missing(component)
        return self.schema


class PolicyFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.fields.PolicyField"
    schema = ref("Policy")


class StoredPolicyFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.responses.StoredPolicyField"
    schema = ref("StoredPolicy")


class FormatFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.fields.FormatField"
    schema = ref("MessageFormat")
    priority = 1  # before the names of its base class


class LabelsFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.fields.LabelsField"
    schema = ref("Labels")


class BranchesFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.fields.BranchesField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Schema:
        ids = {"type": "array", "items": {"type": "string"}}
        return {"oneOf": [{"type": "boolean", "enum": [True]}, ids]}


class MessageFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.responses.MessageField"
    schema = MESSAGE


class MessagesFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.fields.MessagesField"
    schema = FORMATTED_MESSAGES

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Schema:
        schema: Schema = super().map_serializer_field(auto_schema, direction)
        setting = getattr(self.target.parent, "setting", "LISTED_MESSAGES")
        return {**schema, "maxItems": most_messages(setting)}


class RenderedFieldSchema(_NamedSchema):  # type: ignore[no-untyped-call]
    target_class = "chatmemory.api.responses.RenderedField"
    schema = FORMATTED_MESSAGES


class NameFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """The names known when the document is generated."""

    target_class = "chatmemory.api.fields.NameField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Schema:
        return {"type": "string", "enum": self.target.names()}
