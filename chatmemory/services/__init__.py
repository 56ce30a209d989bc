"""All writes. Each is one transaction; within `atomic`, several are one. They return the changes of
the window.

The bare store protocol is in `services.protocol`.
"""

from chatmemory.database import atomic
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.ledger.adding import Recount, count_ahead
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage, NewMessage
from chatmemory.services.branches import branch
from chatmemory.services.compaction import (
    CompactionPreview,
    compact,
    plan_compaction,
    preview_compaction,
)
from chatmemory.services.conversations import adopt_policy, change, create, label
from chatmemory.services.defaults import (
    NamedDefault,
    chosen_policy,
    default_policies,
    default_policy,
    remove_default_policy,
    set_default_policy,
)
from chatmemory.services.erasure import (
    delete,
    delete_all,
    finish_deletions,
    known_branches,
    known_copies,
    redact,
    unaudited_deletions,
)
from chatmemory.services.findings import (
    compute_figures,
    current_incidents,
    forget_old_figures,
)
from chatmemory.services.imports import Imported, Report, import_all, import_conversation
from chatmemory.services.keepers import keepers
from chatmemory.services.keeping import Rounds, keep, newest_kept, remade
from chatmemory.services.messages import (
    add,
    change_and_add,
    clear_messages,
    new_messages,
    pin,
    set_messages,
    unpin,
)
from chatmemory.services.repair import (
    RepairPreview,
    Repairs,
    newest_repair,
    preview_repair,
    repair,
    repair_all,
    undo_repair,
)
from chatmemory.services.sqlite_files import empty_leftover_log, try_to_empty_log
from chatmemory.services.transaction import CHANNEL
from chatmemory.services.trials import forget_old_trials, keep_trial
from chatmemory.services.validation import storable_messages

__all__ = [
    "CHANNEL",
    "QUICK_MESSAGES",
    "ArrivedMessage",
    "ChangeResult",
    "CompactionPreview",
    "EvictedMessage",
    "Imported",
    "NamedDefault",
    "NewMessage",
    "Recount",
    "RepairPreview",
    "Repairs",
    "Report",
    "Rounds",
    "add",
    "adopt_policy",
    "atomic",
    "branch",
    "change",
    "change_and_add",
    "chosen_policy",
    "clear_messages",
    "compact",
    "compute_figures",
    "count_ahead",
    "create",
    "current_incidents",
    "default_policies",
    "default_policy",
    "delete",
    "delete_all",
    "empty_leftover_log",
    "finish_deletions",
    "forget_old_figures",
    "forget_old_trials",
    "import_all",
    "import_conversation",
    "keep",
    "keep_trial",
    "keepers",
    "known_branches",
    "known_copies",
    "label",
    "new_messages",
    "newest_kept",
    "newest_repair",
    "pin",
    "plan_compaction",
    "preview_compaction",
    "preview_repair",
    "redact",
    "remade",
    "remove_default_policy",
    "repair",
    "repair_all",
    "set_default_policy",
    "set_messages",
    "storable_messages",
    "try_to_empty_log",
    "unaudited_deletions",
    "undo_repair",
    "unpin",
]
