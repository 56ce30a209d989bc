"""The requests of the lab: figures are computed slice by slice, and advice is adopted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import InvalidValue, Policy, policies_from_text, text_of_policy
from chatmemory.access.roles import actor_of
from chatmemory.explain.wording import policy_words
from inspector.conversation.budget import BudgetBar
from inspector.rooms.lab import adoption, reads, writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.page import FleetPage
from inspector.rooms.lab.stored import budget_of_all
from inspector.shell.files import csv_file, no_numbers

COLUMNS = (
    *(
        "policy",
        "held",
        "recalls",
        "conversations",
        "user_repeated",
        "call_repeated",
        "prompt_tokens",
    ),
    *("read_tokens", "relative_cost"),
)


@require_http_methods(["GET", "HEAD", "POST"])
def lab(request: HttpRequest) -> HttpResponse:
    """Show the figures of the chosen conversations. A POST computes some more of them first."""
    if request.method == "POST":
        address = _address_in(request.POST.dict())
        writes.compute_figures(address.query)
        if not request.htmx:  # type: ignore[attr-defined]
            return redirect(address.link())
        return _shown(request, address)
    address = _address_in(request.GET.dict())
    if request.GET.get("as") == "csv":
        return no_numbers(address.problem) if address.problem else _csv(address)
    return _shown(request, address)


def _address_in(parameters: Mapping[str, str]) -> FleetAddress:
    """Read an address, or a form in its place."""
    return FleetAddress.read(parameters).with_usual_kind(parameters)


def _shown(request: HttpRequest, address: FleetAddress) -> HttpResponse:
    page = FleetPage(reads.fleet(address.query), address)
    if page.has_answer and page.shown_policy:
        page.losers_of = reads.losers(page.found.tried, page.measured, page.shown_policy)
    budget = BudgetBar(budget_of_all(address.which), page.kind.estimator)
    context = {
        "page": page,
        "address": address,
        "is_stopped": "stop" in request.GET,
        "budget": budget if budget.budget.used else None,
    }
    status = 422 if address.problem else 200
    return render(request, "rooms/lab/lab.html", context, status=status)


def _csv(address: FleetAddress) -> HttpResponse:
    page = FleetPage(reads.fleet(address.query), address)
    sums = page.sums
    points = [*page.chooser.points, *([page.chooser.everything] if sums.calls else [])]
    rows = (
        (
            text_of_policy(each.policy),
            each.tally.held,
            sums.recalls,
            sums.count,
            each.tally.user_repeated,
            each.tally.call_repeated,
            each.tally.tokens,
            each.tally.read,
            round(each.cost, 4),
        )
        for each in points
    )
    return csv_file(COLUMNS, [dict(zip(COLUMNS, row, strict=True)) for row in rows], "recall")


@require_POST
def adopt_for_many(request: HttpRequest) -> HttpResponse:
    """Show which conversations a policy would change; a confirmation changes them in slices."""
    address = _address_in(request.POST.dict())
    if address.problem:
        return _shown(request, address)
    try:
        policy = _policy_of(request, address)
    except InvalidValue as error:
        return _shown(request, replace(address, problem=str(error)))
    if policy is None:
        return redirect(address.link())
    is_confirmed = "confirmed" in request.POST
    changed = 0
    if is_confirmed:
        changed = adoption.adopt_policy(address.which, policy, actor=actor_of(request))
    preview = adoption.adopting(address.which, policy)
    if is_confirmed and not preview.differing:
        return redirect(address.link())
    context = {
        "address": address,
        "policy": text_of_policy(policy),
        "name": policy_words(policy),
        "only_measures": policy.meters_only,
        "preview": preview,
        "changed": changed,
        "confirmed": is_confirmed,
    }
    return render(request, "rooms/lab/adopt_for_many.html", context)


def _policy_of(request: HttpRequest, address: FleetAddress) -> Policy | None:
    """Return the policy of the form, or the policy of the address. Raises InvalidValue."""
    if text := request.POST.get("policy", ""):
        return policies_from_text(text)[0]
    return address.policy(address.limit) if address.limit is not None else None


@require_POST
def fix(request: HttpRequest) -> HttpResponse:
    """Show the advice for each group; a confirmation adopts it in slices."""
    address = _address_in(request.POST.dict())
    if address.problem:
        return _shown(request, address)
    page = FleetPage(reads.fleet(address.query), address)
    if not page.found.is_done:
        return redirect(address.link())
    chosen = [row for row in page.fixable if row.name in request.POST.getlist("group")]
    rows = chosen or page.fixable
    is_confirmed = "confirmed" in request.POST
    remaining = 0
    if is_confirmed:
        policies = {
            each.chosen.id: policy
            for row in chosen
            for policy in [policies_from_text(row.policy)[0]]
            for each in row.group.members
            if policy is not None
        }
        remaining = writes.adopt(policies, actor=actor_of(request))
        if not remaining:
            return redirect(address.link())
    context = {
        "address": address,
        "rows": rows,
        "sums": page.fixing(rows),
        "remaining": remaining,
        "confirmed": is_confirmed,
        "of_clients": reads.decided_by_clients_in(page.found, {row.group.name for row in rows}),
    }
    return render(request, "rooms/lab/fix.html", context)
