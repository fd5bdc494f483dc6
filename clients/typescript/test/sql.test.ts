import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enqueue, enqueueMany, type Queryable } from "stint-client";
import { newKind } from "./gateway.js";

interface Connection extends Queryable {
  connect(): Promise<unknown>;
  end(): Promise<void>;
}

const dsn = process.env.STINT_TEST_POSTGRES;
const name = "pg"; // of those who use it: the package does not need it
const pg = (await import(name).catch(() => undefined)) as { default: { Client: new (dsn?: string) => Connection } } | undefined;
const skip = !dsn ? "STINT_TEST_POSTGRES is not set" : !pg ? "the package pg is missing: npm install --no-save pg" : false;

describe("enqueue by SQL", { skip }, () => {
  let db: Connection;
  before(async () => {
    db = new pg!.default.Client(dsn);
    await db.connect();
  });
  after(() => db.end());

  test("a job exists if and when the transaction commits", async () => {
    const kind = newKind("sql");
    await db.query("begin", []);
    await enqueue(db, kind, { n: 1 });
    await db.query("rollback", []);
    await db.query("begin", []);
    const id = await enqueue(db, kind, { n: 2 });
    await db.query("commit", []);
    const { rows } = await db.query("select id, args from stint.jobs where kind = $1", [kind]);
    assert.deepEqual(rows, [{ id: String(id), args: { n: 2 } }]);
  });

  test("options are those of stint.enqueue", async () => {
    const kind = newKind("options");
    const id = await enqueue(db, kind, [1], {
      queue: "mail", priority: -3, delay: "1h30m", retry: "exponential:5:10s", timeout: "90s", tags: ["a", "b c"], metadata: { x: [1] },
      idempotencyKey: kind, unique: "until-ended", description: "a line", correlation: "c", urn: "urn:x", source: "test", startWithin: "2h",
    });
    const { rows } = await db.query(
      "select queue, priority, args, tags, metadata, correlation, urn, source, due - created > '89 minutes' as late, timeout::text as timeout from stint.jobs where id = $1", [id]);
    assert.deepEqual(rows, [{ queue: "mail", priority: -3, args: [1], tags: ["a", "b c"], metadata: { x: [1], description: "a line" }, correlation: "c", urn: "urn:x", source: "test", late: true, timeout: "90000" }]);
    assert.equal(await enqueue(db, kind, [1], { idempotencyKey: kind }), id);
  });

  test("many jobs are enqueued by one statement, in their order", async () => {
    const kind = newKind("many");
    const ids = await enqueueMany(db, Array.from({ length: 100 }, (_, n) => ({ kind, args: { n }, runAt: new Date(Date.now() + 3_600_000) })));
    const { rows } = await db.query("select (args ->> 'n')::int as n from stint.jobs where kind = $1 order by id", [kind]);
    assert.deepEqual(rows.map((row) => row.n), [...ids.keys()]);
    assert.deepEqual(ids, [...ids].sort((a, b) => a - b));
    assert.deepEqual(await enqueueMany(db, []), []);
  });

  test("what is wrong is told by the database", async () => {
    await assert.rejects(enqueue(db, newKind("wrong"), {}, { retry: "sometimes" }), /retry|policy|sometimes/);
  });
});
