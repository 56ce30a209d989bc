"""The environment variables with which an app sends its model calls to this site."""

from __future__ import annotations


def variables(site: str, token: str) -> str:
    """Return lines of environment variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT=…`. With these,
    an app sends its model calls to `site` with the `token`.
    """
    values = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{site}/otlp",
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{token}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
    }
    return "\n".join(f"{name}={value}" for name, value in values.items())
