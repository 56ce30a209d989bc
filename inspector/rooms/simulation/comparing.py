"""The views that compare policies for one conversation, and set one of these policies."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from chatmemory import (
    InvalidValue,
    LongRecount,
    Policy,
    VersionConflict,
    policies_from_text,
    services,
    text_of_policy,
)
from chatmemory.reading import conversations
from chatmemory.roles import actor_of
from inspector.conversation.policy_change import PolicyChange
from inspector.forms.fields import settings_digest
from inspector.rooms.simulation.compared import ComparePage
from inspector.rooms.simulation.comparison import comparison
from inspector.rooms.simulation.query import ComparisonQuery
from inspector.shell.advice import AdviceCard, advice_on, policy_to_adopt, preview_of
from inspector.shell.files import csv_file, json_file, no_numbers

OUTDATED = "Someone changed the policy meanwhile. Look at the new preview, then change the policy."
CHANGED = "The conversation has changed meanwhile. Look at the new preview, then change the policy."


@require_safe
def compare_policies(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Compare the policies of `?policy=` for a conversation. `?at=` is the position to look at: the
    number of messages before it.

    `?phrase=` is a phrase to search for: the page shows how long each policy keeps the phrase in
    memory. `?as=csv` and `?as=json` return only the numbers. With `?find=`, the parameters are
    those of the conversation page: `?find=` is the phrase, and `?at=` is a step.
    """
    query = ComparisonQuery.read(memory_id, request.GET)
    if query.form and query.problem:
        return no_numbers(query.problem)
    card = advice_on(memory_id, prices=query.prices)
    policies = query.policies or _worth_a_look(memory_id, card)
    try:
        found = comparison(memory_id, policies, query.at, query.phrase, query.step)
    except InvalidValue as error:
        return _page(request, str(error), memory_id=memory_id)
    return _compared(request, ComparePage(found, query, card), memory_id)


def _worth_a_look(memory_id: str, card: AdviceCard | None) -> list[Policy | None]:
    """Return the policies to compare if the URL names none: the policy in force, the advised
    policy, and sending everything.
    """
    pick = card.advice.pick if card else None
    return [conversations.policy(memory_id), *([pick.policy] if pick else []), None]


def _compared(request: HttpRequest, page: ComparePage, memory_id: str) -> HttpResponse:
    """Show a comparison as a page. If the URL asks for CSV or JSON, send only its numbers."""
    name = f"{memory_id}-policies"
    if page.query.form == "json":
        return json_file(page.numbers, name)
    if page.query.form == "csv":
        return csv_file(list(page.numbers[0]), page.numbers, name)
    return _page(request, page.query.problem, memory_id=memory_id, query=page.query, page=page)


def _page(request: HttpRequest, problem: str, **context: object) -> HttpResponse:
    status = 422 if problem else 200
    context["problem"] = problem
    return render(request, "rooms/simulation/compare.html", context, status=status)


@require_POST
def adopt(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show what setting the policy in the field `policy` would change. With the field `confirmed`,
    set this policy, as one step.

    The field `seen` is the digest of the policy that was in force when the page was shown. If
    another policy is in force now, ask for confirmation again.
    """
    try:
        chosen = policies_from_text(request.POST.get("policy", ""))[0]
        policy = policy_to_adopt(chosen, memory_id)
    except InvalidValue as error:
        return _page(request, str(error), memory_id=memory_id)
    if "confirmed" not in request.POST:
        return _confirm(request, memory_id, policy)
    memory, actor = conversations.memory(memory_id), actor_of(request)
    if request.POST.get("seen", "") not in ("", settings_digest(memory.policy)):
        return _confirm(request, memory_id, policy, OUTDATED, status=412)
    try:
        services.change(memory_id, policy=policy, actor=actor, expected_version=memory.version)
    except VersionConflict:
        return _confirm(request, memory_id, policy, CHANGED, status=412)
    return redirect("inspector:conversation", memory_id)


def _confirm(
    request: HttpRequest, memory_id: str, policy: Policy, problem: str = "", status: int = 200
) -> HttpResponse:
    """Show what a policy would change, and ask for confirmation."""
    context: dict[str, object] = {
        "memory_id": memory_id,
        "preview": preview_of({memory_id: None if policy.meters_only else policy}),
        "policy": policy,
        "text": text_of_policy(policy),
        "back": ComparisonQuery.read(memory_id, QueryDict(request.POST.get("back", ""))).query,
        "seen": settings_digest(conversations.policy(memory_id)),
        "problem": problem,
    }
    try:
        context["change"] = PolicyChange(memory_id, policy, "recount" in request.POST)
    except LongRecount as error:
        context["recounted"] = error.messages
    return render(request, "rooms/simulation/adopt.html", context, status=status)
