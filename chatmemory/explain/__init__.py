"""Explanations of the ledger: captions, receipts and reasons, independent of their display."""

from chatmemory.explain.arithmetic import ReceiptLine, receipt
from chatmemory.explain.captions import Caption, caption
from chatmemory.explain.reasons import (
    Explanation,
    remembers,
    room_before,
    why_in,
    why_left,
    without,
)
from chatmemory.explain.wording import (
    amount,
    counted,
    policy_name,
    policy_words,
    reason_of,
    role,
    seqs,
    short_reason,
)

__all__ = [
    "Caption",
    "Explanation",
    "ReceiptLine",
    "amount",
    "caption",
    "counted",
    "policy_name",
    "policy_words",
    "reason_of",
    "receipt",
    "remembers",
    "role",
    "room_before",
    "seqs",
    "short_reason",
    "why_in",
    "why_left",
    "without",
]
