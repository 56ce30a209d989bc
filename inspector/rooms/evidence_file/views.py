"""The pages of evidence files: a form, a preview of masked terms, and the download."""

from __future__ import annotations

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods

from chatmemory.patterns import declared_pattern
from chatmemory.reading import conversations
from chatmemory.roles import actor_of
from inspector.conversation.looks import STYLES
from inspector.forms.fields import STEP_MAX, first_problem
from inspector.rooms.evidence_file.incidents import step_of_incident
from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.masking import WORD_LENGTH, WORDS_MAX, Choice, Masker
from inspector.rooms.evidence_file.reads import Evidence, as_json, evidence
from inspector.shell.one_file import inlined

STYLESHEETS = ("inspector/css/tokens.css", "rooms/evidence_file/file.css")
SCRIPT = "rooms/evidence_file/file.js"
SEQS_MAX = 200
PREVIEWED = 30  # messages with marks in the preview
_NO_FILE_NAME = declared_pattern(r"[^A-Za-z0-9_.-]")
ROLES = sorted({(look.glyph, look.role) for look in STYLES.values() if look.role != "Custom"})


class EvidenceForm(forms.Form):
    """The form for an evidence file: the step, and what to mask. Words are entered one per line."""

    at = forms.IntegerField(required=False, min_value=0, max_value=STEP_MAX)
    kinds = forms.MultipleChoiceField(
        required=False,
        choices=[(kind, kind) for kind in KINDS],
        widget=forms.CheckboxSelectMultiple,
    )
    roles = forms.MultipleChoiceField(
        required=False,
        choices=ROLES,
        widget=forms.CheckboxSelectMultiple,
    )
    words = forms.CharField(
        required=False, max_length=WORDS_MAX * WORD_LENGTH, widget=forms.Textarea(attrs={"rows": 3})
    )
    seqs = forms.CharField(required=False, max_length=2_000)

    def clean_words(self) -> tuple[str, ...]:
        words = [line.strip() for line in self.cleaned_data["words"].splitlines()]
        found = tuple(dict.fromkeys(filter(None, words)))
        if len(found) > WORDS_MAX or any(len(word) > WORD_LENGTH for word in found):
            raise forms.ValidationError(
                f"Mask at most {WORDS_MAX} words, each on its own line with at most {WORD_LENGTH} "
                "characters."
            )
        return found

    def clean_seqs(self) -> frozenset[int]:
        texts = self.cleaned_data["seqs"].replace("#", " ").replace(",", " ").split()
        if len(texts) > SEQS_MAX or not all(each.isdecimal() and len(each) < 19 for each in texts):
            raise forms.ValidationError(
                f"Write the numbers of the messages to mask, such as 12 27: at most {SEQS_MAX} "
                "numbers."
            )
        return frozenset(map(int, texts))

    @property
    def choice(self) -> Choice:
        data = self.cleaned_data
        kinds, roles = frozenset(data["kinds"]), frozenset(data["roles"])
        return Choice(kinds, data["words"], roles, data["seqs"])


@require_http_methods(["GET", "HEAD", "POST"])
def evidence_page(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the form for an evidence file. A POST with the field `download` sends the file. Any
    other POST shows a preview of the masked texts.
    """
    memory = conversations.memory(memory_id)
    is_sent = request.method == "POST"
    form = EvidenceForm(request.POST if is_sent else {"at": _opened_at(request, memory_id)})
    if not form.is_valid():
        if not is_sent:
            raise Http404("'at' in the address must be the number of a step, such as at=12")
        context = {"memory": memory, "form": form, "problem": first_problem(form)}
        return render(request, "rooms/evidence_file/form.html", context, status=422)
    is_file = is_sent and "download" in request.POST
    masker = Masker(form.choice, counts_others=not is_file)
    found = evidence(memory_id, form.cleaned_data["at"], masker)
    if is_file:
        return _download(found, masker, actor_of(request))
    marked = [each for each in found.data["messages"] if "[redacted " in each["text"]]
    context = {
        "memory": memory,
        "form": form,
        "evidence": found,
        "masked": masker.found,
        "unmasked": masker.left,
        "marked": marked[:PREVIEWED],
        "more": max(0, len(marked) - PREVIEWED),
        "is_previewed": is_sent,
    }
    return render(request, "rooms/evidence_file/form.html", context)


def _opened_at(request: HttpRequest, memory_id: str) -> str | int:
    """Return the step in the URL, else the step of the newest incident, else ""."""
    return request.GET.get("at", "") or step_of_incident(memory_id) or ""


def _download(found: Evidence, masker: Masker, actor: str) -> HttpResponse:
    html = file_of(found, masker, actor)
    response = HttpResponse(html, content_type="text/html; charset=utf-8")
    name = _NO_FILE_NAME.sub("_", found.data["id"])[:80]
    named = f'attachment; filename="{name}-step-{found.data["at"]}.html"'
    response["Content-Disposition"] = named
    return response


def file_of(found: Evidence, masker: Masker, actor: str) -> str:
    """Return an evidence file as HTML. The HTML works from disk, without requests to a server."""
    context: dict[str, object] = {
        **inlined(STYLESHEETS, SCRIPT),
        "evidence": found,
        "data": found.data,
        "incident": found.incident,
        "json": mark_safe(as_json(found.data)),  # noqa: S308  (it has no angle bracket)
        "masked": masker.found,
        "actor": masker.text(actor),
        "made": timezone.now(),
    }
    return render_to_string("rooms/evidence_file/file.html", context)
