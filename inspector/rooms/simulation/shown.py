"""The parts of the conversation page for simulations and replays, such as the composer: the form
for drafts and for another limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from django.http import Http404

from chatmemory.explain.captions import Caption
from inspector.conversation import forecasts
from inspector.conversation.measures import Measure
from inspector.forms.fields import searchable
from inspector.rooms.simulation.composer import Composer, DraftForm, Entered
from inspector.rooms.simulation.presenting import DraftRow, SimulationView, trying
from inspector.rooms.simulation.showing import replayed, with_trial
from inspector.rooms.simulation.trials import WhatIf, trial
from inspector.shell.room import Fragment, Part, Place, View
from inspector.shell.state import ConversationState

FOLDER = "rooms/simulation"
NEW_ID_LENGTH = 200


def shown(view: ConversationState) -> View | None:
    """Return the replay or simulation that the URL asks for; None if it asks for neither. Raises
    Http404 for a trial that is no longer stored, and the exceptions of `simulation.simulate`.
    """
    limit = view.query.number("limit")
    if limit is not None:
        return _replay(replayed(view), limit)
    tried = _tried(view)
    if tried is None:
        return None
    state = with_trial(view, tried)
    address = {"trial": tried.key}
    if not state.is_simulated:
        return View(state, tried=address)
    presented = SimulationView(state)
    panel = Fragment(f"{FOLDER}/_why_simulation.html", {"simulation": presented})
    return View(state, presented.caption, panel, address)


def _replay(state: ConversationState, limit: int) -> View | None:
    """Return what a replay shows. If no policy decides the window, return what the stored step
    shows.
    """
    if not state.simulation.is_replay:
        return View(state)
    stored = frozenset(state.stored.window.seqs)
    more = [seq for seq in state.window.seqs if seq not in stored]
    caption: Caption = forecasts.replayed(limit, more, sorted(stored - state.in_window))
    panel = Fragment(f"{FOLDER}/_why_replay.html")
    return View(state, caption, panel, {"limit": limit}, is_lasting=False)


def _tried(view: ConversationState) -> WhatIf | None:
    """Return the trial that the form has made; without a form, the trial in the URL."""
    if "trial" not in view.read:
        key = searchable(view.query.room_parameters.get("trial", ""))
        view.read["trial"] = trial(view.memory.id, key) if key else None
        if key and view.read["trial"] is None:
            raise Http404("this simulation has expired: write its draft messages again")
    found: WhatIf | None = view.read["trial"]
    return found


def parts(view: ConversationState) -> Iterator[Part]:
    """Yield the parts of the conversation page for simulations, such as the composer with its
    drafts, and the link to the comparison.

    If a submitted form was refused, `view.read["form"]` is this form, and `view.read["problem"]` is
    the error to show.
    """
    tried = view.read.get("trial")
    form = view.read.get("form")
    if form is None and tried:
        form = DraftForm.of(tried, view.query.number("edit"))
    if view.simulation.is_replay or tried:
        new_id = f"{view.memory.id[:NEW_ID_LENGTH]}-from-{view.step.n}"
        yield Part(f"{FOLDER}/_simbar.html", {"form": form, "new_id": new_id}, Place.TOP)
    if view.window.policy and not view.simulation.is_replay:
        drafts = tried.drafts if tried else ()
        context = {
            "composer": _composer(view, form),
            "problem": view.read.get("problem", ""),
            "draft_rows": [DraftRow(view, n, draft) for n, draft in enumerate(drafts, 1)],
            "tried": trying(view, tried) if view.is_simulated else None,
        }
        yield Part(f"{FOLDER}/_writing_pane.html", context, Place.BELOW_MEMORY)
    yield Part(f"{FOLDER}/_fields.html", place=Place.FIELDS, order=10)
    yield Part(f"{FOLDER}/_simulate_link.html", place=Place.LINK, order=10)
    yield Part(f"{FOLDER}/_compare_link.html", place=Place.LINK, order=30)


def _composer(view: ConversationState, form: DraftForm | None) -> Composer:
    """Return the composer with the values of a form; without a form, for the next draft."""
    measure = Measure.of(view.window.policy)
    names = [each.name for each in fields(Entered)]
    return Composer(
        view.memory.id,
        measure.limit,
        measure.unit,
        view.is_live,
        view.is_simulated,
        view.read.get("problem", ""),
        Entered(**{name: form[name].value() for name in names}) if form is not None else Entered(),
    )
