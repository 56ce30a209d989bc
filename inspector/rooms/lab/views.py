"""The requests of the lab: show figures, compute figures, and adopt advice. Long work is done in
slices: each request works for a second or two, and the next request continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import InvalidValue, Policy, policies_from_text, text_of_policy
from chatmemory.explain.wording import policy_words
from chatmemory.roles import actor_of
from inspector.conversation.budget import BudgetBar
from inspector.rooms.lab import adoption, frameworks, reads, writes
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
    """Show the figures of the chosen conversations. A POST computes further figures first."""
    if request.method == "POST":
        address = _address_in(request.POST.dict())
        writes.compute_figures(address.query)
        if address.frameworks:
            frameworks.compute(address.frameworks)
        if not request.htmx:  # type: ignore[attr-defined]  # set by InspectorMiddleware
            return redirect(address.link())
        return _shown(request, address)
    address = _address_in(request.GET.dict())
    if request.GET.get("as") == "csv":
        return no_numbers(address.problem) if address.problem else _csv(address)
    return _shown(request, address)


def _address_in(parameters: Mapping[str, str]) -> FleetAddress:
    """Read the settings of the lab from the parameters of a URL or of a form."""
    return FleetAddress.read(parameters).with_usual_kind(parameters)


def _shown(request: HttpRequest, address: FleetAddress) -> HttpResponse:
    page = FleetPage(reads.fleet(address.query), address)
    if page.has_answer and page.shown_policy:
        measured = (each.measured for each in page.found.known)
        page.loss_examples = reads.loss_examples(measured, page.shown_policy)
    budget = BudgetBar(budget_of_all(page.found.ids), page.kind.estimator)
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
    everything = page.everything
    options = [*page.advice.options, *([everything] if everything else [])]
    rows = (
        (
            each.text,
            each.held,
            each.needed,
            each.from_conversations,
            each.tally.user_repeated,
            each.tally.call_repeated,
            each.tally.tokens,
            each.tally.read,
            round(each.cost, 4),
        )
        for each in options
    )
    return csv_file(COLUMNS, [dict(zip(COLUMNS, row, strict=True)) for row in rows], "recall")


@require_POST
def adopt_for_many(request: HttpRequest) -> HttpResponse:
    """Show how many conversations a new policy would change. A confirmed POST changes as many as
    possible in a second or two. The next POST changes more.
    """
    address = _address_in(request.POST.dict())
    if address.problem:
        return _shown(request, address)
    try:
        policies = _policy_of(request, address)
    except InvalidValue as error:
        return _shown(request, replace(address, problem=str(error)))
    if not policies:
        return redirect(address.link())
    policy, page = policies[0], FleetPage(reads.fleet(address.query), address)
    apart = page.apart
    is_confirmed = "confirmed" in request.POST
    changed = 0
    if is_confirmed:
        actor = actor_of(request)
        changed = adoption.adopt_policy(address.which, policy, actor=actor, apart=apart)
    preview = adoption.adopting(address.which, policy, apart)
    if is_confirmed and not preview.differing:
        return redirect(address.link())
    only_measures = policy is None or policy.meters_only
    context = {
        "address": address,
        "policy": text_of_policy(policy),
        "name": "" if policy is None else policy_words(policy),
        "only_measures": only_measures,
        "adoption": preview,
        "apart": len(apart),
        "preview": None if is_confirmed else page.effect_of(None if only_measures else policy),
        "changed": changed,
        "confirmed": is_confirmed,
    }
    return render(request, "rooms/lab/adopt_for_many.html", context)


def _policy_of(request: HttpRequest, address: FleetAddress) -> list[Policy | None]:
    """Return a list with the policy in the form, or with the limit in the URL. Empty without both.
    Raises InvalidValue.
    """
    if text := request.POST.get("policy", ""):
        return policies_from_text(text)[:1]
    return [address.policy(address.limit)] if address.limit is not None else []


@require_POST
def fix(request: HttpRequest) -> HttpResponse:
    """Show the groups for which a policy other than today's is advised. A confirmed POST sets the
    advised policies in the chosen groups, for as many conversations as possible in a second or two.
    The next POST changes more.
    """
    address = _address_in(request.POST.dict())
    if address.problem:
        return _shown(request, address)
    page = FleetPage(reads.fleet(address.query), address)
    if not page.found.is_done:
        return redirect(address.link())
    chosen = [row for row in page.fixable if row.key in request.POST.getlist("group")]
    rows = chosen or page.fixable
    is_confirmed = "confirmed" in request.POST
    remaining = 0
    if is_confirmed:
        policies = {
            id: row.advice.pick.policy for row in chosen if row.advice.pick for id in row.changed
        }
        remaining = writes.adopt(policies, actor=actor_of(request))
        if not remaining:
            return redirect(address.link())
    context = {
        "address": address,
        "rows": rows,
        "preview": page.previewed(rows),
        "remaining": remaining,
        "confirmed": is_confirmed,
        "of_clients": page.of_clients,
    }
    return render(request, "rooms/lab/fix.html", context)
