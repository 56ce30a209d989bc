"""Distributes the tables over the nodes of a cluster: PostgreSQL with the extension Citus.

All rows of a conversation are on one node, so that its changes and pages use one node. Rows that
belong to no conversation are on the coordinator, the node to which every process connects.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError

_NAMED = "memory_id"
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtext('chatmemory distribute'))"
_OTHERS = """SELECT count(*) FROM pg_dist_node
    WHERE noderole = 'primary' AND isactive AND groupid <> 0"""
_SOON = "SET LOCAL citus.node_connection_timeout = '2s'"
_ANSWERS = """SELECT nodename || ':' || nodeport, success
    FROM run_command_on_workers('SELECT 1') ORDER BY 1"""
_KNOWN = """SELECT column_to_column_name(logicalrelid, partkey) FROM pg_dist_partition
    WHERE logicalrelid = to_regclass(%s)"""
# Excludes other programs' tables that happen to be distributed by a column of the same type.
_ALONE = "none"


class NotDistributable(ChatMemoryError):
    """Raised if tables cannot be distributed. The error's text has the reason, such as that the
    database is not a cluster.
    """


@dataclass(frozen=True)
class Placement:
    """Where the rows of a table are stored. `column` is the column with a conversation's id: each
    row is on the node of its conversation.

    If `column` is None, all rows are on the coordinator.
    """

    table: str
    column: str | None


_LABEL = "chatmemory_"  # the prefix of the rooms' labels


def placements() -> list[Placement]:
    """Return the placement of each table that has the id of a conversation. The table of Memory
    comes first.

    Tables that have such an id, but no foreign key to Memory, are on the coordinator.
    """
    memory = apps.get_model("chatmemory", "Memory")
    others = [model for model in _models() if model != memory]
    found = [_placement(model, memory) for model in others]
    first = Placement(memory._meta.db_table, memory._meta.pk.column)
    return [first, *(each for each in found if each)]


def _models() -> list[type[Model]]:
    """Return the models of the kernel and of the rooms."""
    return [each for each in apps.get_models() if each._meta.app_label.startswith("chatmemory")]


def _placement(model: type[Model], memory: type[Model]) -> Placement | None:
    for field in model._meta.local_concrete_fields:
        if field.related_model is memory:
            return Placement(model._meta.db_table, field.column)
        if field.column == _NAMED:
            return Placement(model._meta.db_table, None)
    return None


def distribute(*, single_node: bool = False) -> list[Placement]:
    """Distribute the tables that are not distributed yet, in one transaction. Returns the
    placements of these tables.

    Raises NotDistributable. A cluster of one node is only accepted with `single_node`.
    """
    check_postgresql()
    with database.atomic(), database.connection().cursor() as cursor:
        _take_turn(cursor)
        check_cluster(cursor)
        placed = [each for each in placements() if not _is_known(cursor, each)]
        if placed and not single_node:
            _check_nodes(cursor)
        for each in placed:
            _place(cursor, each)
        for each in placed:
            _remove_leftovers(cursor, each)
        _bound_waiting(cursor)
    return placed


def check_postgresql() -> None:
    """Raise NotDistributable unless the database is PostgreSQL."""
    connection = database.connection()
    if connection.vendor != "postgresql":
        raise NotDistributable(
            f"{connection.display_name} cannot be distributed: set DATABASE_URL to a PostgreSQL "
            "with the extension citus"
        )


def _take_turn(cursor: CursorWrapper) -> None:
    """Lock out other processes that distribute tables, until the transaction ends. Raises
    NotDistributable if another process has the lock.
    """
    cursor.execute(_LOCK)
    (is_ours,) = cursor.fetchone()
    if not is_ours:
        raise NotDistributable(
            "a different distribute command is running in this database: wait until it ends"
        )


def check_cluster(cursor: CursorWrapper) -> None:
    """Raise NotDistributable unless the database has the extension Citus and the tables of
    chatmemory.
    """
    if not _has_extension(cursor):
        raise NotDistributable(
            "this PostgreSQL has no extension citus: install it on each node, and run CREATE "
            "EXTENSION citus in the chatmemory database of each node (docs/operations.md)"
        )
    if placements()[0].table not in database.connection().introspection.table_names(cursor):
        raise NotDistributable("the tables are missing: run manage.py migrate first")


def _check_nodes(cursor: CursorWrapper) -> None:
    """Raise NotDistributable if the coordinator knows no other node.

    A database that was restored has lost its list of nodes.
    """
    cursor.execute(_OTHERS)
    (others,) = cursor.fetchone()
    if not others:
        raise NotDistributable(
            "this database knows no other node, so all conversations would stay on this one: add "
            "the nodes with citus_add_node first, also those of a database that was restored "
            "(docs/operations.md); to distribute over this one alone, use --single-node"
        )


def distributed_tables() -> list[str]:
    """Return the names of the tables whose rows are on several nodes; [] if the database is not a
    cluster.
    """
    if database.connection().vendor != "postgresql":
        return []
    with database.connection().cursor() as cursor:
        if not _has_extension(cursor):
            return []
        return [each.table for each in placements() if each.column and _is_known(cursor, each)]


def unreachable_nodes() -> list[str]:
    """Return the cluster nodes that do not respond; [] if the database is not a cluster.

    Raises OperationalError if no node with conversations responds.
    """
    if database.connection().vendor != "postgresql":
        return []
    with database.atomic(), database.connection().cursor() as cursor:
        if not _has_extension(cursor):
            return []
        cursor.execute(_SOON)
        cursor.execute(_ANSWERS)
        answers = dict(cursor.fetchall())
    if answers and not any(answers.values()):
        raise OperationalError(
            "no node of the cluster that has conversations answers: start the nodes, and try again"
        )
    return [node for node, is_there in answers.items() if not is_there]


def _has_extension(cursor: CursorWrapper) -> bool:
    cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
    return cursor.fetchone() is not None


def _is_known(cursor: CursorWrapper, placement: Placement) -> bool:
    """Return whether Citus has already placed the table as `placement` says. Raises
    NotDistributable if the table is placed in another way.
    """
    cursor.execute(_KNOWN, [placement.table])
    found = cursor.fetchone()
    if found and found[0] != placement.column:
        raise NotDistributable(
            f"{placement.table} is already distributed by {found[0]}, not by {placement.column}: "
            "run undistribute_table on it first"
        )
    return found is not None


def _place(cursor: CursorWrapper, placement: Placement) -> None:
    if placement.column is None:
        # Citus then commits it and the conversations in two phases. A table that it does not know
        # is committed last, and a crash before that would lose the audit entry of a deletion, or
        # let a repeated request be carried out twice.
        cursor.execute("SELECT citus_add_local_table_to_metadata(%s)", [placement.table])
        return
    together = _ALONE if placement == placements()[0] else placements()[0].table
    cursor.execute(
        "SELECT create_distributed_table(%s, %s, colocate_with => %s)",
        [placement.table, placement.column, together],
    )


def _remove_leftovers(cursor: CursorWrapper, placement: Placement) -> None:
    """Remove the copies of rows that Citus leaves on the coordinator. Text that is erased later
    would stay in these copies.

    All tables that refer to one another must be distributed before.
    """
    if placement.column:
        cursor.execute("SELECT truncate_local_data_after_distributing_table(%s)", [placement.table])


def _bound_waiting(cursor: CursorWrapper) -> None:
    """Let a writer on any node wait for a lock only as long as this connection waits."""
    cursor.execute("SHOW lock_timeout")
    (longest,) = cursor.fetchone()
    cursor.execute("SELECT current_database()")
    (name,) = cursor.fetchone()
    quoted = database.connection().ops.quote_name(name)
    cursor.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {quoted} SET lock_timeout = %s", [longest])
