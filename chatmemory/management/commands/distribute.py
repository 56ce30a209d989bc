from __future__ import annotations

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from chatmemory import distribution
from chatmemory.database_errors import explain_error
from chatmemory.management.base import DatabaseCommand
from chatmemory.printing import OptionValue


class Command(DatabaseCommand):
    help = (
        "Distribute conversations over the nodes of a Citus cluster, by their id. Run this "
        "command on the coordinator's database after migrate, and again after each later migrate. "
        "Tables that are already distributed stay unchanged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--single-node",
            action="store_true",
            help="distribute even if the database knows no other node",
        )

    def handle(self, *args: object, **options: OptionValue) -> None:
        try:
            placed = distribution.distribute(single_node=options["single_node"])
        except (distribution.NotDistributable, DatabaseError) as error:
            raise CommandError(explain_error(error) or str(error)) from error
        for each in placed:
            where = f"distributed by {each.column}" if each.column else "on the coordinator"
            self.stdout.write(f"{each.table}: {where}")
        if not placed:
            self.stdout.write("all tables are distributed already")
