"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

ERROR = "messages.3.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
STATES = {
    "doctor": State("/doctor/"),
    "doctor-viewer": State("/doctor/", by="viewer"),
    "doctor-cause": State("/doctor/?rule=dangling_call&provider=openai"),
    "doctor-rules": State("/doctor/rules/"),
    "doctor-error": State("/doctor/error/", form={"error": ERROR}),
    "doctor-providers": State("/doctor/providers/"),
}
