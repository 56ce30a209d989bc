"""The forms of the inspector's pages, one module per page or pair of pages."""

from inspector.forms.bulk import BulkForm, check_number
from inspector.forms.composer import BranchForm, DraftForm
from inspector.forms.fields import first_problem, searchable, whole_number
from inspector.forms.settings import DefaultPolicyForm, SettingsForm, settings_digest
from inspector.forms.tokens import TokenForm
from inspector.forms.transfer import ExportForm, ImportForm

__all__ = [
    "BranchForm",
    "BulkForm",
    "DefaultPolicyForm",
    "DraftForm",
    "ExportForm",
    "ImportForm",
    "SettingsForm",
    "TokenForm",
    "check_number",
    "first_problem",
    "searchable",
    "settings_digest",
    "whole_number",
]
