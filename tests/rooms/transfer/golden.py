"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

CHATS = b"""[
    [{"role": "user", "content": "My order is A-1182."},
     {"role": "assistant", "content": "Yes?", "name": "bot"},
     {"role": "user", "content": "Where is A-1182?"}],
    [{"role": "robot", "content": "hi"}]
]"""

STATES = {
    "order-export": State("/c/order-7741/export/?what=window&at=43&format=sharegpt"),
    "import": State("/import/"),
    "imported": State(
        "/import/",
        form={"file": CHATS, "format": "auto", "kind": "message_window", "limit": "2"},
    ),
}
