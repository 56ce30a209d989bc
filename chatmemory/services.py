"""The public functions that write conversations. Most of them return what changed in memory.

A call is one transaction, but a long import or deletion takes several. Within a block of `atomic`,
several calls are one transaction. The services of installed rooms can be imported from here, too.
The three methods of LangChain4j's store are in `ledger.protocol`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import apps

from chatmemory.database import atomic
from chatmemory.examination import Examination
from chatmemory.inserted import NewMessage
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.keeping import Rounds, keep, newest_kept, remade
from chatmemory.ledger.adding import Recount, count_ahead
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.compaction import (
    CompactionPreview,
    compact,
    plan_compaction,
    preview_compaction,
)
from chatmemory.ledger.conversations import change, create, label
from chatmemory.ledger.defaults import (
    NamedDefault,
    chosen_policy,
    default_policies,
    default_policy,
    remove_default_policy,
    set_default_policy,
)
from chatmemory.ledger.erasure import (
    delete,
    delete_all,
    finish_deletions,
    known_branches,
    unaudited_deletions,
)
from chatmemory.ledger.index_terms import leave_out_term, list_term, preview_term
from chatmemory.ledger.messages import (
    add,
    change_and_add,
    clear_messages,
    new_messages,
    pin,
    plan_list,
    set_messages,
    unpin,
)
from chatmemory.ledger.slices import import_conversation
from chatmemory.ledger.transaction import CHANNEL
from chatmemory.ledger.validation import storable_messages
from chatmemory.rooms import keepers, rooms
from chatmemory.sqlite_files import empty_leftover_log, try_to_empty_log

__all__ = [
    "CHANNEL",
    "QUICK_MESSAGES",
    "ChangeResult",
    "CompactionPreview",
    "Examination",
    "NamedDefault",
    "NewMessage",
    "Recount",
    "Rounds",
    "add",
    "atomic",
    "change",
    "change_and_add",
    "chosen_policy",
    "clear_messages",
    "compact",
    "count_ahead",
    "create",
    "default_policies",
    "default_policy",
    "delete",
    "delete_all",
    "empty_leftover_log",
    "finish_deletions",
    "import_conversation",
    "keep",
    "keepers",
    "known_branches",
    "label",
    "leave_out_term",
    "list_term",
    "new_messages",
    "newest_kept",
    "pin",
    "plan_compaction",
    "plan_list",
    "preview_compaction",
    "preview_term",
    "remade",
    "remove_default_policy",
    "set_default_policy",
    "set_messages",
    "storable_messages",
    "try_to_empty_log",
    "unaudited_deletions",
    "unpin",
]

if not TYPE_CHECKING:  # type checkers find these in the modules of rooms

    def __getattr__(name: str) -> object:
        """Return a service of an installed room."""
        for room in rooms() if apps.apps_ready else ():
            if name in room.services:
                return getattr(import_module(room.services[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
