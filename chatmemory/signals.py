"""What a project may listen to, as it does to Django's own signals."""

from __future__ import annotations

from django.dispatch import Signal

# Sent by Memory after the commit of each change, with
#   memory_id  the conversation
#   actor      whoever made the change
#   results    a tuple of ChangeResult, one for each step
#   fill       how full the window is then: 1.0 at its limit, None without a policy
# An error of a receiver is logged; it cannot undo the change.
memory_changed = Signal()
