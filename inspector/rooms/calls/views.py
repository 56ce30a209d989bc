"""Pages of model calls: the start page with setup, the calls of a conversation, and one call."""

from __future__ import annotations

import secrets
from typing import Protocol, runtime_checkable

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory.access.tokens import create_token
from chatmemory.exceptions import ChatMemoryError, MessageNotFound
from chatmemory.reading import conversations
from chatmemory.reading.rows import MemoryRow
from chatmemory.recall.cost import providers
from chatmemory.roles import GIVE_TOKENS, Role, actor_of
from chatmemory.rooms import rooms
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policy_from_text
from inspector.rooms.calls import reads
from inspector.rooms.calls.call import REMEDIES, DropReason
from inspector.rooms.calls.erasure import redact_sent
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.overview import CallFilter, CallsPage
from inspector.rooms.calls.page import CallPage, bars, policy_of
from inspector.shell.prices import OWN, ChosenPrices, wrong_price
from inspector.shell.room import Fragment

LISTED = reads.LISTED
HERE = "TOKEN"
POLICY = 200  # characters of a policy that is tried


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def intake(request: HttpRequest) -> HttpResponse:
    """Show the start page: totals by day and model, the newest calls, and calls that were not
    stored. The page also has the settings by which an app sends its calls to this site.

    A POST creates a token, and shows it once within these settings.
    """
    secret = HERE
    if request.method == "POST":
        if not request.user.has_perm(GIVE_TOKENS):
            raise PermissionDenied
        name = f"calls of an app, {secrets.token_hex(3)}"
        secret = create_token(name, Role.OPERATOR, created_by=actor_of(request))
    site = request.build_absolute_uri("/").removesuffix("/")
    dropped, given = reads.newest_dropped(), request.GET.dict()
    context = {
        "setups": _setups(site, secret),
        "has_token": request.method == "POST",
        "page": CallsPage(CallFilter.read(given), ChosenPrices.read(given)),
        "dropped": [(each, REMEDIES[DropReason(each.why)]) for each in dropped],
        "dropped_calls": sum(each.count for each in dropped),
        "problem": wrong_price(request.GET),
    }
    return render(request, "rooms/calls/intake.html", context)


@runtime_checkable
class CallSource(Protocol):
    """A feature that records model calls, and can explain how an app sends its calls."""

    def how_to_send(self, site: str, token: str) -> Fragment:
        """Return instructions for an app to send its calls to this site with a token."""


def _setups(site: str, token: str) -> list[Fragment]:
    sources = (room for room in rooms() if isinstance(room, CallSource))
    return [each.how_to_send(site, token) for each in sources]


@require_safe
def calls(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Redirect to the newest call of a conversation. If the conversation has no calls, show a page
    with instructions.
    """
    memory = conversations.memory(memory_id)
    newest = reads.newest_call(memory_id)
    if newest is None:
        return render(request, "rooms/calls/none.html", {"memory": memory})
    return redirect("inspector:call", memory_id, newest.n)


@require_safe
def call(request: HttpRequest, memory_id: str, n: int) -> HttpResponse:
    """Show one model call, with the list of all calls of its conversation.

    `as=json` shows the raw request. `policy=token_window:4000` compares the call with the window of
    another policy.
    """
    with one_snapshot():
        memory = conversations.memory(memory_id)
        try:
            found = reads.one_call(memory_id, n)
        except reads.CallNotFound as error:
            raise Http404(str(error)) from error
        before = reads.call_before(found.row)
        policy, problem = _policy(request, memory)
        is_known = before is None or before.step is not None
        other = before if is_known else reads.call_compared_with(found.row)
        prices = _prices(request, found.row)
        page = CallPage(found, reads.RebuiltCall(other) if other else None, policy, prices)
        context = {
            "memory": memory,
            "page": page,
            "call": found.row,
            "before": before,
            "after": reads.call_after(found.row),
            "calls": bars(reads.newest_calls(memory_id, LISTED)),
            "totals": reads.totals(memory_id),
            "is_raw": request.GET.get("as") == "json",
            "tried": request.GET.get("policy", "")[:POLICY],
            "problem": problem or wrong_price(request.GET),
        }
        return render(request, "rooms/calls/call.html", context)


@require_POST
def redact(request: HttpRequest, memory_id: str, n: int, place: int) -> HttpResponse:
    """Redact a message that is in a call's request but not in history, then show the call. `place`
    is the index of the message in call `n`.
    """
    try:
        redact_sent(memory_id, n, place, actor=actor_of(request))
    except (reads.CallNotFound, MessageNotFound) as error:
        raise Http404(str(error)) from error
    return redirect("inspector:call", memory_id, n)


def _prices(request: HttpRequest, call: ModelCall) -> ChosenPrices:
    """Return the prices in the URL, with the cache rules of the provider that answered the call."""
    own = call.provider if call.provider in providers() else OWN
    return ChosenPrices.read({"provider": own, **request.GET.dict()})


def _policy(request: HttpRequest, memory: MemoryRow) -> tuple[Policy | None, str]:
    """Return the policy to compare with, from the URL or the conversation. The second value says
    what is wrong with the URL, or is "".
    """
    text = request.GET.get("policy", "").strip()
    if not text:
        return policy_of(memory.policy), ""
    if len(text) > POLICY:
        return None, "a policy is written as token_window:4000"
    try:
        return policy_from_text(text), ""
    except ChatMemoryError as error:
        return None, str(error)
