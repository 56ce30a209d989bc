"""Databases on a cluster: PostgreSQL with Citus, whose coordinator is CITUS_DATABASE_URL.

That database has the extension and knows the nodes. The user may create databases on each of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo

URL = os.environ.get("CITUS_DATABASE_URL", "")
NODES = "SELECT nodename, nodeport, groupid FROM pg_dist_node WHERE isactive ORDER BY groupid"
KNOWS_ITSELF = "SELECT citus_set_coordinator_host('{}', {})"
SHARDS = 4  # of each table: fewer than the default, because each is an empty table in a test


@contextmanager
def cluster_database(*, knows_nodes: bool = True) -> Iterator[str]:
    """The URL of a new database on all nodes of the cluster, or on the coordinator alone."""
    name = f"chatmemory_{uuid4().hex[:12]}"
    with psycopg.connect(URL) as admin:
        nodes = admin.execute(NODES).fetchall()[: None if knows_nodes else 1]
    try:
        for host, port, _ in nodes:
            execute(host, port, "postgres", f"CREATE DATABASE {name}")
            execute(host, port, name, "CREATE EXTENSION citus")
        (coordinator, coordinator_port, _), *workers = nodes
        execute(
            coordinator,
            coordinator_port,
            name,
            f"ALTER DATABASE {name} SET citus.shard_count = {SHARDS}",
            *([KNOWS_ITSELF.format(coordinator, coordinator_port)] if knows_nodes else []),
            *(f"SELECT citus_add_node('{host}', {port})" for host, port, _ in workers),
        )
        yield f"{URL.rpartition('/')[0]}/{name}"
    finally:
        for host, port, _ in nodes:
            execute(host, port, "postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def execute(host: str, port: int, database: str, *statements: str) -> None:
    """Carry out statements in a database of a node."""
    place = make_conninfo(URL, host=host, port=port, dbname=database)
    with psycopg.connect(place, autocommit=True) as opened:
        for statement in statements:
            opened.execute(statement)
