"""One conversation under several policies, and taking one of them over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import (
    InvalidValue,
    LongRecount,
    Policy,
    VersionConflict,
    policies_from_text,
    queries,
    services,
    text_of_policy,
)
from chatmemory.access.actors import actor_of
from inspector.conversation.policy_change import policy_change
from inspector.forms import settings_digest
from inspector.lab.asked import Asked
from inspector.lab.compared import ComparePage
from inspector.lab.downloads import csv_file, json_file, no_numbers
from inspector.lab.files import conversation_of

OUTDATED = "Someone set another policy meanwhile. Look at the preview, then use it."
CHANGED = "The conversation has changed meanwhile. Look at the preview, then use it."


@require_safe
def compare(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation under the policies of `?policy=`, after `?at=` messages.

    `?phrase=` follows a phrase, and `?as=csv` or `?as=json` are the numbers alone.
    """
    asked = Asked.read(memory_id, request.GET)
    if asked.form and asked.problem:
        return no_numbers(asked.problem)
    try:
        found = queries.comparison(memory_id, asked.chosen(), asked.at, asked.phrase)
    except InvalidValue as error:
        return _refused(request, memory_id, str(error))
    page = ComparePage(found, asked)
    if asked.form:
        return _download(page, memory_id)
    shown: dict[str, Any] = {"page": page, "memory_id": memory_id, "problem": asked.problem}
    status = 422 if asked.problem else 200
    return render(request, "inspector/compare.html", shown, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def compare_file(request: HttpRequest) -> HttpResponse:
    """Show the same of a conversation in a file, of which nothing is stored.

    The forms of the page carry the conversation, and `go` has the parameters of a link.
    """
    go = request.POST.get("go")
    asked = Asked.read("", QueryDict(go) if go else request.POST or request.GET)
    shown: dict[str, Any] = {"page": None, "asked": asked, "problem": asked.problem}
    if asked.form and asked.problem:
        return no_numbers(asked.problem)
    if request.method == "POST":
        try:
            shown["file"] = file = conversation_of(request.POST, request.FILES)
            found = queries.comparison_of(file.messages, asked.chosen(), asked.at, asked.phrase)
        except InvalidValue as error:
            shown["problem"] = str(error)
            return render(request, "inspector/compare_file.html", shown, status=422)
        shown["page"] = page = ComparePage(found, asked)
        shown["asked"] = page.asked
        if asked.form:
            return _download(page, file.title)
    status = 422 if asked.problem else 200
    return render(request, "inspector/compare_file.html", shown, status=status)


@require_POST
def adopt(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Asks whether the policy of the form shall be in force, then makes it so, as one step.

    It asks again if the policy in force is no longer that of the digest `seen`.
    """
    try:
        policy = _policy(request.POST.get("policy", ""))
    except InvalidValue as error:
        return _refused(request, memory_id, str(error))
    if "confirmed" not in request.POST:
        return _asked(request, memory_id, policy)
    memory, actor = queries.memory(memory_id), actor_of(request)
    if request.POST.get("seen", "") not in ("", settings_digest(memory.policy)):
        return _asked(request, memory_id, policy, OUTDATED, status=412)
    try:
        services.change(memory_id, policy=policy, actor=actor, expected_version=memory.version)
    except VersionConflict:
        return _asked(request, memory_id, policy, CHANGED, status=412)
    return redirect("inspector:conversation", memory_id)


def _asked(
    request: HttpRequest, memory_id: str, policy: Policy, problem: str = "", status: int = 200
) -> HttpResponse:
    """Show what a policy would change, and ask whether it shall be in force."""
    context: dict[str, Any] = {
        "memory_id": memory_id,
        "policy": policy,
        "text": text_of_policy(policy),
        "back": Asked.read(memory_id, QueryDict(request.POST.get("back", ""))).query,
        "seen": settings_digest(queries.policy(memory_id)),
        "problem": problem,
    }
    try:
        context["change"] = policy_change(memory_id, policy, "recount" in request.POST)
    except LongRecount as error:
        context["recounted"] = error.messages
    return render(request, "inspector/adopt.html", context, status=status)


def _policy(text: str) -> Policy:
    """Return the policy of a text. Raises InvalidValue, also for a window without a limit."""
    policy = policies_from_text(text)[0]
    if policy is None:
        raise InvalidValue("a conversation needs a limit: choose another policy")
    return policy


def _refused(request: HttpRequest, memory_id: str, problem: str) -> HttpResponse:
    context = {"page": None, "memory_id": memory_id, "problem": problem}
    return render(request, "inspector/compare.html", context, status=422)


def numbers(page: ComparePage) -> Iterator[dict[str, Any]]:
    """Yield what a program reads of each policy."""
    history = page.found.history
    prices = page.asked.prices
    for each, followed in zip(page.found.policies, page.found.followed, strict=True):
        sums = each.prompts
        cost = prices.cost(sums.tokens, sums.reusable, sums.output)
        at = followed.forgotten
        yield {
            "policy": text_of_policy(each.policy),
            "messages": len(history),
            "recalls": each.recalls,
            "held": each.held,
            "lost": len(each.lost),
            "said_again": len(each.said_again),
            "forgotten": each.forgotten,
            "calls": sums.calls,
            "prompt_tokens": sums.tokens,
            "output_tokens": sums.output,
            "cache_breaks": sums.breaks,
            "reusable_tokens": sums.reusable,
            "cost": None if cost is None else str(cost),
            **{f"refused_by_{name.lower()}": count for name, count in sums.refused.items()},
            "phrase": page.phrase or None,
            "phrase_forgotten_at": None if at is None else history.numbers[at],
            "phrase_kept_by": followed.keeping.limit if followed.keeping else None,
        }


def _download(page: ComparePage, name: str) -> HttpResponse:
    """Answer the numbers in the form that was asked for."""
    rows = list(numbers(page))
    if page.asked.form == "json":
        return json_file(rows, f"{name}-policies")
    return csv_file(list(rows[0]) if rows else [], rows, f"{name}-policies")
