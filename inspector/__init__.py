"""The inspector: web pages that show conversations. docs/mounting.md says how another Django
project mounts them.
"""

import chatmemory.reports  # noqa: F401  (refuses another package named chatmemory in its place)

# Each is a capability in folders of its own: docs/rooms.md
ROOMS = [
    "inspector.rooms.evidence",
    "inspector.rooms.simulation",
    "inspector.rooms.doctor",
    "inspector.rooms.repairs",
    "inspector.rooms.integrity",
    "inspector.rooms.lessons",
    "inspector.rooms.settings",
    "inspector.rooms.transfer",
    "inspector.rooms.erasure",
    "inspector.rooms.live",
    "inspector.rooms.agents",
    "inspector.rooms.lab",
    "inspector.rooms.observability",
    "inspector.rooms.evidence_file",
    "inspector.rooms.calls",
    "inspector.rooms.recorder",
    "inspector.rooms.otlp",
    "inspector.rooms.phrase",
    "inspector.rooms.pydantic_ai",
    "inspector.rooms.search",
    "inspector.rooms.hours",
]
MIDDLEWARE = ["inspector.middleware.own_pages.InspectorMiddleware"]
