"""The forms of the inspector's pages."""

from inspector.forms.actions import (
    BulkForm,
    CompactForm,
    ExportForm,
    ImportForm,
    RepairForm,
    TokenForm,
    check_chosen,
)
from inspector.forms.composer import BranchForm, DraftForm
from inspector.forms.fields import first_problem, number_in_text, searchable
from inspector.forms.settings import DefaultPolicyForm, SettingsForm, settings_digest

__all__ = [
    "BranchForm",
    "BulkForm",
    "CompactForm",
    "DefaultPolicyForm",
    "DraftForm",
    "ExportForm",
    "ImportForm",
    "RepairForm",
    "SettingsForm",
    "TokenForm",
    "check_chosen",
    "first_problem",
    "number_in_text",
    "searchable",
    "settings_digest",
]
