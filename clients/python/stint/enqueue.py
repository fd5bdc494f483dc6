"""Enqueue in a PostgreSQL transaction of your own: the job exists if and when it commits."""
import json
from typing import Any, Callable, Iterable

from .errors import text

# What a job may say beside its kind and its arguments, with the type of the SQL parameter.
OPTIONS = {
    "queue": "text", "priority": "integer", "run_at": "timestamptz", "delay": "interval", "retry": "text", "timeout": "interval",
    "tags": "text[]", "urn": "text", "source": "text", "metadata": "jsonb", "idempotency_key": "text", "correlation": "text",
    "start_by": "timestamptz", "start_within": "interval", "description": "text", "unique": "text", "limits": "text[]",
}


def enqueue(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """Enqueue a job in the transaction of a connection or cursor of psycopg or psycopg2, and return its id. options: see OPTIONS."""
    return enqueue_many(conn, kind, [args], **options)[0]


def enqueue_many(conn: Any, kind: str, args: Iterable[Any], **options: Any) -> list[int]:
    """Enqueue a job for each of args, with the same options, in one statement."""
    with (conn.connection if hasattr(conn, "fetchone") else conn).cursor() as cursor:
        cursor.execute(*_statement(kind, args, options, "%s".format))
        return [_id(row) for row in cursor.fetchall()]


async def enqueue_async(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """enqueue for a connection of asyncpg, or an AsyncConnection or AsyncCursor of psycopg."""
    return (await enqueue_many_async(conn, kind, [args], **options))[0]


async def enqueue_many_async(conn: Any, kind: str, args: Iterable[Any], **options: Any) -> list[int]:
    if hasattr(conn, "fetchval"):  # asyncpg
        sql, values = _statement(kind, args, options, "${}".format)
        return [_id(row) for row in await conn.fetch(sql, *values)]
    async with (conn.connection if hasattr(conn, "fetchone") else conn).cursor() as cursor:
        await cursor.execute(*_statement(kind, args, options, "%s".format))
        return [_id(row) for row in await cursor.fetchall()]


def _statement(kind: str, args: Iterable[Any], options: dict[str, Any], mark: Callable[[int], str]) -> tuple[str, list[Any]]:
    values: list[Any] = [kind]
    named = ""
    for name, value in given(options).items():
        values.append(json.dumps(value, allow_nan=False) if name == "metadata" else value)
        cast = "::text" if OPTIONS[name] in ("jsonb", "interval") else ""
        named += f", {'uniqueness' if name == 'unique' else name} => {mark(len(values))}{cast}::{OPTIONS[name]}"
    values.append(json.dumps([{} if a is None else a for a in args], allow_nan=False))
    return (f"select stint.enqueue({mark(1)}::text, a{named}) as id "
            f"from jsonb_array_elements({mark(len(values))}::text::jsonb) with ordinality as t(a, n) order by n"), values


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not None, durations as texts."""
    return {name: text(v) if OPTIONS.get(name) == "interval" else v for name, v in options.items() if v is not None}


def _id(row: Any) -> int:
    return int(row["id"] if isinstance(row, dict) else row[0])
