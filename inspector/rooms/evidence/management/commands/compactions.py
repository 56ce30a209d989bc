from __future__ import annotations

from chatmemory.management.base import ReportCommand
from chatmemory.reports import compactions


class Command(ReportCommand):
    help = compactions.HELP
    about_files = compactions
