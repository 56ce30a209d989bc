"""Explanations of the ledger: captions, receipts and reasons, independent of their display."""

from chatmemory.core.phrases import phrase_place
from chatmemory.core.texts import named
from chatmemory.explain.captions import Caption, caption, change_of_policy, forecast, tried_limit
from chatmemory.explain.causes import Cause, cause_of, reason_of, short_reason
from chatmemory.explain.limits import (
    beyond_limit,
    beyond_tried_limit,
    leaving,
    one_beyond_limit,
    over_limit,
    pinning,
    what_is_hidden,
)
from chatmemory.explain.phrase import Period, PhraseAnswer, PhraseQuestion, remembers, without
from chatmemory.explain.reasons import (
    Explanation,
    room_before,
    what_would_have_kept,
    why_in,
    why_left,
)
from chatmemory.explain.receipts import Receipt, ReceiptLine, receipt, shortened
from chatmemory.explain.wording import (
    amount,
    capitalized,
    counted,
    happened,
    in_unit,
    load_words,
    oldest,
    option_words,
    percent,
    policy_name,
    policy_words,
    role,
    seqs,
)

__all__ = [
    "Caption",
    "Cause",
    "Explanation",
    "Period",
    "PhraseAnswer",
    "PhraseQuestion",
    "Receipt",
    "ReceiptLine",
    "amount",
    "beyond_limit",
    "beyond_tried_limit",
    "capitalized",
    "caption",
    "cause_of",
    "change_of_policy",
    "counted",
    "forecast",
    "happened",
    "in_unit",
    "leaving",
    "load_words",
    "named",
    "oldest",
    "one_beyond_limit",
    "option_words",
    "over_limit",
    "percent",
    "phrase_place",
    "pinning",
    "policy_name",
    "policy_words",
    "reason_of",
    "receipt",
    "remembers",
    "role",
    "room_before",
    "seqs",
    "short_reason",
    "shortened",
    "tried_limit",
    "what_is_hidden",
    "what_would_have_kept",
    "why_in",
    "why_left",
    "without",
]
