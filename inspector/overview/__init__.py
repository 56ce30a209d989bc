"""Presenters of the overview: what its address asks for, its rows, its feed and its numbers."""

from inspector.overview.asked import ORDERINGS, PARAMETERS, Asked
from inspector.overview.headlines import Headlines, current_headlines
from inspector.overview.rows import FeedRow, Row

__all__ = ["ORDERINGS", "PARAMETERS", "Asked", "FeedRow", "Headlines", "Row", "current_headlines"]
