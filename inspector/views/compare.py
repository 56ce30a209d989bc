"""One conversation under several policies, and taking one of them over."""

from __future__ import annotations

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
from chatmemory.access.roles import actor_of
from inspector.conversation.policy_change import policy_change
from inspector.forms import settings_digest
from inspector.lab.asked import ComparisonAsked
from inspector.lab.compared import ComparePage
from inspector.lab.downloads import csv_file, json_file, no_numbers
from inspector.lab.files import conversation_of

COMPARE = "inspector/lab/compare.html"
COMPARE_FILE = "inspector/lab/compare_file.html"
OUTDATED = "Someone set another policy meanwhile. Look at the preview, then use it."
CHANGED = "The conversation has changed meanwhile. Look at the preview, then use it."


@require_safe
def compare(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation under the policies of `?policy=`, after `?at=` messages.

    `?phrase=` follows a phrase, and `?as=csv` or `?as=json` are the numbers alone.
    """
    asked = ComparisonAsked.read(memory_id, request.GET)
    context = {"memory_id": memory_id}
    if asked.form and asked.problem:
        return no_numbers(asked.problem)
    try:
        found = queries.comparison(memory_id, asked.chosen(), asked.at, asked.phrase)
    except InvalidValue as error:
        return _refused(request, COMPARE, context, str(error))
    return _compared(request, COMPARE, context, ComparePage(found, asked), memory_id)


@require_http_methods(["GET", "HEAD", "POST"])
def compare_file(request: HttpRequest) -> HttpResponse:
    """Show the same of a conversation in a file, of which nothing is stored.

    The forms of the page carry the conversation, and `go` has the parameters of a link.
    """
    go = request.POST.get("go")
    asked = ComparisonAsked.read("", QueryDict(go) if go else request.POST or request.GET)
    context: dict[str, Any] = {"asked": asked}
    if asked.form and asked.problem:
        return no_numbers(asked.problem)
    if request.method != "POST":
        context["problem"] = asked.problem
        return render(request, COMPARE_FILE, context, status=422 if asked.problem else 200)
    try:
        context["file"] = file = conversation_of(request.POST, request.FILES)
        found = queries.comparison_of(file.messages, asked.chosen(), asked.at, asked.phrase)
    except InvalidValue as error:
        return _refused(request, COMPARE_FILE, context, str(error))
    return _compared(request, COMPARE_FILE, context, ComparePage(found, asked), file.title)


def _compared(
    request: HttpRequest, template: str, context: dict[str, Any], page: ComparePage, name: str
) -> HttpResponse:
    """Show a comparison, or send the numbers of it in the form that was asked for."""
    asked, numbers = page.asked, page.numbers
    if asked.form == "json":
        return json_file(numbers, f"{name}-policies")
    if asked.form == "csv":
        return csv_file(list(numbers[0]), numbers, f"{name}-policies")
    context |= {"page": page, "asked": asked, "problem": asked.problem}
    return render(request, template, context, status=422 if asked.problem else 200)


def _refused(
    request: HttpRequest, template: str, context: dict[str, Any], problem: str
) -> HttpResponse:
    return render(request, template, {**context, "problem": problem}, status=422)


@require_POST
def adopt(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Ask whether the policy of the form shall be in force, then make it so, as one step.

    It asks again if the policy in force is no longer that of the digest `seen`.
    """
    try:
        policy = _policy(request.POST.get("policy", ""))
    except InvalidValue as error:
        return _refused(request, COMPARE, {"memory_id": memory_id}, str(error))
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
        "back": ComparisonAsked.read(memory_id, QueryDict(request.POST.get("back", ""))).query,
        "seen": settings_digest(queries.policy(memory_id)),
        "problem": problem,
    }
    try:
        context["change"] = policy_change(memory_id, policy, "recount" in request.POST)
    except LongRecount as error:
        context["recounted"] = error.messages
    return render(request, "inspector/lab/adopt.html", context, status=status)


def _policy(text: str) -> Policy:
    """Return the policy of a text. Raises InvalidValue, also for a window without a limit."""
    policy = policies_from_text(text)[0]
    if policy is None:
        raise InvalidValue("a conversation needs a limit: choose another policy")
    return policy
