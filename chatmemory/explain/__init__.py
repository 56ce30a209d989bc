"""Explanations of the ledger: captions, receipts and reasons, independent of their display."""

from chatmemory.core.phrases import phrase_place
from chatmemory.core.recall.incidents import call_words, incident_words
from chatmemory.core.texts import asked_for, named, quoted, readable_text
from chatmemory.explain.captions import (
    Caption,
    beyond_limit,
    beyond_tried_limit,
    caption,
    change_of_policy,
    forecast,
    leaving,
    one_beyond_limit,
    over_limit,
    pinning,
    replayed,
    tried_limit,
    what_is_hidden,
)
from chatmemory.explain.phrase import (
    PhraseAnswer,
    remembered,
    without,
)
from chatmemory.explain.reasons import (
    Explanation,
    not_in_replay,
    room_before,
    what_would_have_kept,
    why_in,
    why_left,
)
from chatmemory.explain.receipts import Receipt, ReceiptLine, receipt, shortened
from chatmemory.explain.wording import (
    amount,
    capitalized,
    cause_of,
    counted,
    happened,
    held_words,
    in_unit,
    load_words,
    oldest,
    option_words,
    percent,
    policy_name,
    policy_words,
    reason_of,
    role,
    seqs,
    short_reason,
    system_share,
)
