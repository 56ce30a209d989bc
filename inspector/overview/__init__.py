"""Presenters of the overview: what its address asks for, its rows, its feed and its numbers."""

from inspector.overview.selection import ORDERINGS, PARAMETERS, Asked
from inspector.overview.table import Headlines, Row, current_feed, current_headlines

__all__ = [
    "ORDERINGS",
    "PARAMETERS",
    "Asked",
    "Headlines",
    "Row",
    "current_feed",
    "current_headlines",
]
