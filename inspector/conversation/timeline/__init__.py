"""The timeline: a chart of all steps, and a strip with a cell for each step around the playhead.

Styles and templates call it the tape. Its data are those of `queries.steps`.
"""

from inspector.conversation.timeline.cells import Cell, CellLinks
from inspector.conversation.timeline.drawing import Timeline, draw
from inspector.conversation.timeline.labels import Label

__all__ = ["Cell", "CellLinks", "Label", "Timeline", "draw"]
