"""The environment variables with which an app sends its calls to this site."""

from __future__ import annotations


def variables(site: str, token: str) -> str:
    """Return the lines for the environment of an app that sends its calls to a site."""
    values = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{site}/otlp",
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{token}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
    }
    return "\n".join(f"{name}={value}" for name, value in values.items())
