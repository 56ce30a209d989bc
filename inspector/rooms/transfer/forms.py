"""The forms of an export and of an import."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from django import forms

from chatmemory import InvalidValue, Oversized, Policy, policy_kinds
from chatmemory.formats import format_title, readable_formats, writable_formats
from inspector.conf import inspector_configuration
from inspector.forms.fields import STEP_MAX, option_field, policy_of, select
from inspector.middleware.bodies import upload_limit
from inspector.rooms.transfer.archives import is_archive

RECOVERY = "auto_recover_orphaned_tool_messages"
OPTIONS = ("low_water", "oversized", "snap_to_user", "free_system", RECOVERY)


class ExportForm(forms.Form):
    """The form for an export: history or window, a format, and a step. Without a step, the newest
    step is exported.
    """

    format = forms.ChoiceField(choices=lambda: _titled(writable_formats()), widget=select())
    what = forms.ChoiceField(
        choices=[
            ("history", "History: all messages"),
            ("window", "Memory: messages that the model sees"),
        ],
        widget=select(),
    )
    at = forms.IntegerField(required=False, min_value=0, max_value=STEP_MAX)


class ImportForm(forms.Form):
    """The form of an import: a transcript file, and the policy for its conversations. A file in the
    format `chatmemory` is not accepted.
    """

    file = forms.FileField()
    format = forms.ChoiceField(
        choices=lambda: [("auto", "Detect the format"), *_titled(readable_formats())],
        widget=select(),
    )
    kind = forms.ChoiceField(
        choices=lambda: [(name, kind.unit) for name, kind in policy_kinds().items()],
        widget=select(**{"aria-label": "Unit"}),
    )
    limit = forms.IntegerField(min_value=1, max_value=STEP_MAX, initial=20)
    begin = forms.CharField(required=False, max_length=100, strip=True)
    low_water = option_field("low_water", Decimal, "1")
    oversized = option_field("oversized", Oversized, Oversized.EVICT)
    snap_to_user = option_field("snap_to_user", bool, False)
    free_system = option_field("free_system", bool, False)
    auto_recover_orphaned_tool_messages = option_field(RECOVERY, bool, False)

    def clean_file(self) -> object:
        file = self.cleaned_data["file"]
        if file.size is None or file.size > upload_limit().size:
            raise forms.ValidationError(self.too_large())
        if is_archive(file):
            raise forms.ValidationError(
                "The file is an export with all steps, which this page cannot import. Import the "
                f"file with {_command()}."
            )
        return file

    @staticmethod
    def too_large() -> str:
        """Return the error for a file that is too large. The import page also shows this error if
        the server rejects the upload with status 413.
        """
        return f"The file is larger than {upload_limit()}. Import the file with {_command()}."

    def clean(self) -> dict[str, object]:
        """Check that the options of the policy fit together, and fit the limit."""
        if not self.errors:
            try:
                _ = self.policy
            except InvalidValue as error:
                raise forms.ValidationError(str(error)) from error
        return self.cleaned_data

    @property
    def policy(self) -> Policy:
        """The policy that the form describes. Raises InvalidValue if its options do not fit
        together.
        """
        data = self.cleaned_data
        return policy_of(data["kind"], data["limit"], {name: data[name] for name in OPTIONS})

    @property
    def id_prefix(self) -> str:
        """The beginning of the IDs of imported conversations; see the function `id_prefix`."""
        return id_prefix(self.cleaned_data["begin"], self.cleaned_data["file"].name or "")


def id_prefix(begin: str, name: str) -> str:
    """Return the beginning of the IDs of imported conversations: `begin`. If `begin` is empty, use
    the file's name: "chats-" for chats.json.
    """
    return begin or f"{(name or 'import').partition('.')[0]}-"


def _titled(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of formats, sorted by title. Each label ends with the name that commands
    and the API use.
    """
    titles = {name: format_title(name) for name in names}
    labels = {
        name: f"{title} ({name})" if title != name else name for name, title in titles.items()
    }
    return sorted(labels.items(), key=lambda each: each[1].casefold())


def _command() -> str:
    return f"{inspector_configuration().MANAGE} import_transcripts"
