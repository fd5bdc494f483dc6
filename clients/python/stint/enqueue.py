"""Enqueue in a PostgreSQL transaction of your own: the job exists if and when it commits."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Tuple

from .durations import check_instant, text

# What a job may say, beside its kind and its arguments, with the type of the SQL parameter.
OPTIONS = {
    "queue": "text", "priority": "integer", "run_at": "timestamptz", "delay": "interval", "retry": "text", "timeout": "interval",
    "tags": "text[]", "urn": "text", "source": "text", "metadata": "jsonb", "idempotency_key": "text", "correlation": "text",
    "start_by": "timestamptz", "start_within": "interval", "description": "text", "unique": "text", "limits": "text[]",
}


def enqueue(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """Enqueue a job in the transaction of a connection or cursor of psycopg or psycopg2, and return its id.

    Options: queue, priority, run_at, delay, retry, timeout, tags, urn, source, metadata, idempotency_key, correlation, start_by,
    start_within, description, unique, limits. What is left out is what the kind's declaration says."""
    return enqueue_many(conn, kind, [args], **options)[0]


def enqueue_many(conn: Any, kind: str, args: Iterable[Any], **options: Any) -> List[int]:
    """Enqueue a job for each of args, with the same options, in one statement."""
    sql, values = _statement(kind, args, options, "%s".format)
    with (conn.connection if hasattr(conn, "fetchone") else conn).cursor() as cursor:
        cursor.execute(sql, values)
        return [_id(row) for row in cursor.fetchall()]


async def enqueue_async(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """enqueue for a connection of asyncpg, or an AsyncConnection or AsyncCursor of psycopg."""
    return (await enqueue_many_async(conn, kind, [args], **options))[0]


async def enqueue_many_async(conn: Any, kind: str, args: Iterable[Any], **options: Any) -> List[int]:
    if hasattr(conn, "fetchval"):  # asyncpg
        sql, values = _statement(kind, args, options, "${}".format)
        return [_id(row) for row in await conn.fetch(sql, *values)]
    sql, values = _statement(kind, args, options, "%s".format)
    async with (conn.connection if hasattr(conn, "fetchone") else conn).cursor() as cursor:
        await cursor.execute(sql, values)
        return [_id(row) for row in await cursor.fetchall()]


def _statement(kind: str, args: Iterable[Any], options: Dict[str, Any], mark: Any) -> Tuple[str, List[Any]]:
    values: List[Any] = [kind]
    named = ""
    for name, value in given(options, OPTIONS).items():
        values.append(json.dumps(value, allow_nan=False) if OPTIONS[name] == "jsonb" else value)
        cast = "::text" if OPTIONS[name] in ("jsonb", "interval") else ""
        named += f", {'uniqueness' if name == 'unique' else name} => {mark(len(values))}{cast}::{OPTIONS[name]}"
    values.append(json.dumps([{} if a is None else a for a in args], allow_nan=False))
    return (f"select stint.enqueue({mark(1)}::text, a{named}) as id "
            f"from jsonb_array_elements({mark(len(values))}::text::jsonb) with ordinality as t(a, n) order by n"), values


def given(options: Dict[str, Any], known: Iterable[str]) -> Dict[str, Any]:
    """The options that are not None, durations as texts. TypeError for one that is not known."""
    unknown = set(options) - set(known)
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    said = {name: value for name, value in options.items() if value is not None}
    for name, value in said.items():
        if OPTIONS.get(name) == "interval":
            said[name] = text(value)
        elif OPTIONS.get(name) == "timestamptz":
            said[name] = check_instant(value)
        elif OPTIONS.get(name) == "text[]":
            said[name] = list(value)
    return said


def _id(row: Any) -> int:
    return int(row["id"] if isinstance(row, dict) else row[0])
