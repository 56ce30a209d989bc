from __future__ import annotations

from django.core.management.base import BaseCommand, CommandParser

from chatmemory.reports import hook


class Command(BaseCommand):
    help = hook.HELP
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        hook.add_arguments(parser)

    def handle(self, *args: object, **options: object) -> None:
        hook.run(options, self.stdout.write)
