"""The ledger in words."""

from chatmemory.explain.reasons import (
    Caption,
    Explanation,
    ReceiptLine,
    amount,
    caption,
    policy_name,
    policy_words,
    reason_words,
    receipt,
    remembers,
    role,
    room_before,
    seqs,
    why_in,
    why_left,
    without,
)

__all__ = [
    "Caption",
    "Explanation",
    "ReceiptLine",
    "amount",
    "caption",
    "policy_name",
    "policy_words",
    "reason_words",
    "receipt",
    "remembers",
    "role",
    "room_before",
    "seqs",
    "why_in",
    "why_left",
    "without",
]
