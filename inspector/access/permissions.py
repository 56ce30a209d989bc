"""View decorators: the permission that a page requires. Without it the answer is 403."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required

from chatmemory.access.roles import ERASE, GIVE_TOKENS, READ, WRITE

read_required = permission_required(READ, raise_exception=True)
write_required = permission_required(WRITE, raise_exception=True)
erase_required = permission_required(ERASE, raise_exception=True)
token_management_required = permission_required(GIVE_TOKENS, raise_exception=True)
