"""Pages whose texts are in the folder `golden`."""

from __future__ import annotations

from tests.golden.states import State

ORDER, CLASS = "/c/order-7741/", "/c/classroom/"
POLICIES = "policy=message_window:10&policy=token_window:400"
BOTH = "policy=token_window:800&policy=token_window:902"
STATES = {
    "order-replayed": State(f"{ORDER}?at=46&limit=902"),
    "order-verdict": State(
        f"{ORDER}verdict/", form={"role": "user", "text": "A-1182 again."}, htmx=True
    ),
    "order-incident-compared": State(f"{ORDER}compare/?{BOTH}&at=46&find=A-1182"),
    "order-compared": State(f"{ORDER}compare/?{POLICIES}&at=43&phrase=A-1182"),
    "order-adopt": State(f"{ORDER}adopt/", form={"policy": "message_window:10"}),
    "class-drafts": State(f"{CLASS}?trial={{both}}"),
    "class-draft-edited": State(f"{CLASS}?trial={{drafts}}&draft=1&edit=1"),
    "class-limit-tried": State(f"{CLASS}?trial={{limit}}"),
    "class-simulation-viewer": State(f"{CLASS}?at=9&trial={{drafts}}", by="viewer"),
    "class-draft-refused": State(f"{CLASS}simulate/", form={"role": "user", "text": " "}),
}
