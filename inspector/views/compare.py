"""One conversation under several policies, and taking one of them over."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import (
    InvalidValue,
    LongRecount,
    Policy,
    policies_from_text,
    queries,
    services,
    text_of_policy,
)
from inspector.conversation.policy_change import policy_change
from inspector.lab.asked import Asked
from inspector.lab.compared import ComparePage
from inspector.lab.files import conversation_of

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


@require_safe
def compare(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation under the policies of `?policy=`, after `?at=` messages.

    `?phrase=` follows a phrase, and `?as=csv` or `?as=json` are the numbers alone.
    """
    asked = Asked.read(memory_id, request.GET)
    try:
        found = queries.comparison(memory_id, asked.chosen(), asked.at, asked.phrase)
    except InvalidValue as error:
        return _refused(request, memory_id, str(error))
    page = ComparePage(found, asked)
    if asked.form:
        return _download(page, memory_id)
    shown: dict[str, Any] = {"page": page, "memory_id": memory_id, "problem": asked.problem}
    return render(request, "inspector/compare.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
def compare_file(request: HttpRequest) -> HttpResponse:
    """Show the same of a conversation in a file, of which nothing is stored.

    The forms of the page carry the conversation, and `go` has the parameters of a link.
    """
    go = request.POST.get("go")
    asked = Asked.read("", QueryDict(go) if go else request.POST or request.GET)
    shown: dict[str, Any] = {"page": None, "asked": asked, "problem": asked.problem}
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
    return render(request, "inspector/compare_file.html", shown)


@require_POST
def adopt(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Asks whether the policy of the form shall be in force, then makes it so, as one step."""
    try:
        policy = _policy(request.POST.get("policy", ""))
    except InvalidValue as error:
        return _refused(request, memory_id, str(error))
    if "confirmed" in request.POST:
        services.change(memory_id, policy=policy, actor=request.user.get_username())
        return redirect("inspector:conversation", memory_id)
    context: dict[str, Any] = {
        "memory_id": memory_id,
        "policy": policy,
        "text": text_of_policy(policy),
    }
    try:
        context["change"] = policy_change(memory_id, policy, "recount" in request.POST)
    except LongRecount as error:
        context["recounted"] = error.messages
    return render(request, "inspector/adopt.html", context)


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
        return HttpResponse(json.dumps(rows, indent=2), "application/json")
    return _csv(rows, f"{name}-policies.csv")


def _csv(rows: list[dict[str, Any]], name: str) -> HttpResponse:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{_plain(name)}"'}
    return HttpResponse(text.getvalue(), "text/csv; charset=utf-8", headers=headers)


def _cell(value: Any) -> Any:
    """A value for a spreadsheet: an apostrophe keeps text from being taken for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _plain(name: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in name
    )
