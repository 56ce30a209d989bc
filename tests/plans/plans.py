"""The plans by which the database answers the queries of a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from django.core.cache import cache
from django.db import connection

LARGE = {f"chatmemory_{name}" for name in ("message", "stay", "step", "calls_callmessage")}
READ_MAX = 2_000  # rows of a large table, for one query
SORTED_MAX = 1_000  # rows: those of the 25 sparklines of a page

_OURS = re.compile(r"\(?(SELECT|INSERT|UPDATE|DELETE|WITH)\b.*\bchatmemory_", re.DOTALL)
_ALIAS = re.compile(r'"(chatmemory_\w+)" ([A-Z]\d+)\b')
_READS = re.compile(r"(SCAN|SEARCH) (\w+)(?:.* INDEX (\w+))?")
_CUT = re.compile(r"LIMIT \S+( OFFSET \S+)?$")
# The primary keys have other names on each database; PostgreSQL has two indexes of the memory's.
_PRIMARY_KEY = re.compile(r"(?:sqlite_autoindex_)?(chatmemory_[a-z]+)_(?:1|pkey|id_\w+_like)")
# The index of texts is a table on SQLite.
_TEXTS = {"chatmemory_search", "chatmemory_search_message", "chatmemory_search_beside"}


@dataclass
class Plan:
    """How a query is answered: the indexes that it uses, and its faults in words."""

    sql: str
    indexes: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def use(self, index: str) -> None:
        key = _PRIMARY_KEY.fullmatch(index)
        self.indexes.add("texts" if index in _TEXTS else f"{key[1]} by key" if key else index)


def plans_of(call: Callable[[], Any]) -> list[Plan]:
    """The plans of all queries about conversations that a call sends."""
    plan_of = _of_sqlite if connection.vendor == "sqlite" else _of_postgresql
    return [plan_of(*each) for each in sent_by(call)]


def sent_by(call: Callable[[], Any]) -> list[tuple[str, Any]]:
    """The queries about conversations that a call sends, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(execute, sql, params, many, context):
        if _OURS.match(sql):
            sent.append((sql, params[0] if many else params))
        return execute(sql, params, many, context)

    cache.clear()
    with connection.execute_wrapper(note):
        call()
    return sent


def rows_of(sql: str, params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def work_of(call: Callable[[], Any]) -> int:
    """How many instructions SQLite carries out for a call, in tens."""
    found = count()
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: next(found) < 0, 10)
    call()
    connection.connection.set_progress_handler(None, 10)
    return next(found)


def _of_sqlite(sql: str, params: Any) -> Plan:
    """SQLite's plans have no numbers of rows, so the returned rows are counted."""
    plan, tables = Plan(sql), {alias: name for name, alias in _ALIAS.findall(sql)}
    for *_, detail in rows_of(f"EXPLAIN QUERY PLAN {sql}", params):
        if found := _READS.match(detail):
            how, name, index = found.groups()
            table, is_cut = tables.get(name, name), _CUT.search(sql)
            plan.use(table if "VIRTUAL TABLE" in detail else index or table)
            if how == "SCAN" and table in LARGE and not (index and is_cut):
                plan.faults.append(f"scans {table}")
        elif detail == "USE TEMP B-TREE FOR ORDER BY" and LARGE & set(_named_in(sql)):
            returned = len(rows_of(sql, params))
            if _CUT.search(sql) or returned > SORTED_MAX:
                plan.faults.append(f"sorts before it returns {returned} rows")
    return plan


def _named_in(sql: str) -> list[str]:
    return re.findall(r"chatmemory_[a-z]+", sql)


def _of_postgresql(sql: str, params: Any) -> Plan:
    """PostgreSQL carries out what only reads, and tells how many rows each part of it had."""
    plan = Plan(sql)
    options = "ANALYZE, TIMING OFF, " if sql.startswith(("SELECT", "WITH")) else ""
    (((explained,),),) = (rows_of(f"EXPLAIN ({options}FORMAT JSON) {sql}", params),)
    for node in nodes(explained[0]["Plan"]):
        times = node.get("Actual Loops", 1)
        rows = node.get("Actual Rows", 0) * times
        if "Index Name" in node:
            plan.use(node["Index Name"])
        if node.get("Relation Name") in LARGE:
            read = rows + node.get("Rows Removed by Filter", 0) * times
            if node["Node Type"] == "Seq Scan" or read > READ_MAX:
                plan.faults.append(f"reads {read} rows: {node['Node Type']}")
        elif node["Node Type"].endswith("Sort") and rows > SORTED_MAX:
            plan.faults.append(f"sorts {rows} rows")
    return plan


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a plan, from the top."""
    yield node
    for each in node.get("Plans", ()):
        yield from nodes(each)
