import asyncio
import json
import os
import unittest
import uuid
from datetime import datetime, timedelta, timezone

import stint

DSN = os.environ.get("STINT_TEST_POSTGRES", "")


def driver(name):
    try:
        return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed")


@unittest.skipUnless(DSN, "STINT_TEST_POSTGRES is not set: a DSN of a database with stint's schema")
class SQLTest(unittest.TestCase):
    def setUp(self):
        self.kind = f"py-sql-{uuid.uuid4().hex[:8]}"
        self.options = {"queue": "mail", "delay": "1h", "priority": 2, "retry": "fixed:2:10s", "timeout": timedelta(seconds=90),
                        "tags": ["a", "b"], "metadata": {"x": 1}, "unique": "until-ended,by=/to", "limits": []}
        self.select = "select id, args, queue, priority, tags from stint.jobs where kind = '%s' order by id" % self.kind

    def check(self, rows, ids):
        rows = [(r[0], json.loads(r[1]) if isinstance(r[1], str) else r[1], r[2], r[3], r[4]) for r in map(tuple, rows)]
        self.assertEqual(rows, [(ids[0], {"to": 1}, "mail", 2, ["a", "b"]), (ids[1], {"to": 2}, "mail", 2, ["a", "b"]),
                                (ids[2], {"to": 3}, "mail", 2, ["a", "b"])])

    def sync(self, connect):
        conn = connect(DSN)
        self.addCleanup(conn.close)
        stint.enqueue(conn, self.kind, {"to": 1})
        conn.rollback()
        ids = [stint.enqueue(conn, self.kind, {"to": 1}, **self.options)]
        cursor = conn.cursor()
        cursor.execute("select 7")
        ids += stint.enqueue_many(cursor, self.kind, [{"to": 2}, {"to": 3}], **self.options)
        self.assertEqual(cursor.fetchone()[0], 7)  # what the cursor holds is left alone
        self.assertEqual(stint.enqueue(conn, self.kind, {"to": 1}, **self.options), ids[0])  # unique
        conn.commit()
        cursor.execute(self.select)
        self.check(cursor.fetchall(), ids)
        at = datetime.now(timezone.utc) + timedelta(days=1)
        stint.enqueue(conn, self.kind, run_at=at, start_by=at + timedelta(hours=1))
        conn.rollback()

    def test_psycopg2(self):
        self.sync(driver("psycopg2").connect)

    def test_psycopg(self):
        self.sync(driver("psycopg").connect)

    def test_psycopg_with_rows_as_dicts(self):
        psycopg = driver("psycopg")
        from psycopg.rows import dict_row
        with psycopg.connect(DSN, row_factory=dict_row) as conn:
            self.assertGreater(stint.enqueue(conn, self.kind, {"to": 1}, delay="1h"), 0)
            conn.rollback()

    def test_psycopg_async(self):
        psycopg = driver("psycopg")

        async def program():
            async with await psycopg.AsyncConnection.connect(DSN) as conn:
                await stint.enqueue_async(conn, self.kind, {"to": 1})
                await conn.rollback()
                ids = [await stint.enqueue_async(conn, self.kind, {"to": 1}, **self.options)]
                ids += await stint.enqueue_many_async(conn, self.kind, [{"to": 2}, {"to": 3}], **self.options)
                await conn.commit()
                return await (await conn.execute(self.select)).fetchall(), ids

        self.check(*asyncio.run(program()))

    def test_asyncpg(self):
        asyncpg = driver("asyncpg")

        async def program():
            conn = await asyncpg.connect(DSN)
            tx = conn.transaction()
            await tx.start()
            await stint.enqueue_async(conn, self.kind, {"to": 1})
            await tx.rollback()
            async with conn.transaction():
                ids = [await stint.enqueue_async(conn, self.kind, {"to": 1}, **self.options)]
                ids += await stint.enqueue_many_async(conn, self.kind, [{"to": 2}, {"to": 3}], **self.options)
                await stint.enqueue_async(conn, self.kind + "-at", run_at=datetime.now(timezone.utc) + timedelta(days=1))
            rows = await conn.fetch(self.select)
            await conn.close()
            return rows, ids

        self.check(*asyncio.run(program()))
