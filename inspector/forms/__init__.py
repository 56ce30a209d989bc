"""The forms of the inspector's pages, one module per page or pair of pages."""

from inspector.forms.bulk import BulkForm
from inspector.forms.composer import DraftForm
from inspector.forms.fields import first_problem
from inspector.forms.search import searchable
from inspector.forms.tokens import TokenForm
from inspector.forms.transfer import ExportForm, ImportForm

__all__ = [
    "BulkForm",
    "DraftForm",
    "ExportForm",
    "ImportForm",
    "TokenForm",
    "first_problem",
    "searchable",
]
