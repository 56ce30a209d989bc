"""The Django signals of chatmemory. A comment above each signal lists its arguments."""

from __future__ import annotations

from django.dispatch import Signal

# Sent by Memory after the commit of each change, with
#   memory_id  the conversation
#   actor      the name of the account, token or program that made the change
#   results    a tuple of ChangeResult, one for each step
#   fill       the load of the window divided by its limit, None without a policy
# An error of a receiver is logged; it cannot undo the change.
memory_changed = Signal(use_caching=True)

# Sent after the commit that keeps the diagnosis of a window, if the window breaks rules of
# providers that it did not break at the last diagnosis, with
#   memory_id  the conversation
#   new        a tuple of these rules
problems_found = Signal()

# Sent after the commit that keeps new incidents, with
#   memory_id  the conversation
#   new        the number of new ones by kind: `user_repeated`, `call_repeated` or `user_supplied`
incidents_found = Signal()

# Sent after the commit that keeps a red flag which the previous row of the conversation did not
# have, with   memory_id  the conversation   cause      the name of the flag
cases_found = Signal()

# Sent by `manage.py vacuum`, before it removes the traces of deleted rows: receivers delete rows
# that a project has kept for longer than necessary.
vacuuming = Signal()
