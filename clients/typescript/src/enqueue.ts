import type { Duration } from "./duration.js";

/** What both a kind and a job can say. */
export interface JobOptions {
  queue?: string;
  /** Lower first, from -100 to 100. */ priority?: number;
  /** What happens after a failure: none, fixed:2:1s, exponential:10:1m, … */ retry?: string;
  /** Bounds each attempt. */ timeout?: Duration;
}

/** What a job can say that differs from the defaults of its kind. */
export interface EnqueueOptions extends JobOptions {
  /** Not to be started before. */ runAt?: Date | string;
  /** The same, counted from now by the database's clock. */ delay?: Duration;
  tags?: string[];
  /** A second enqueue with the same key stores nothing, and gives the id of the first job. */ idempotencyKey?: string;
  /** until-ended, until-started, within:1h, slot:24h, with what may follow: until-ended,by=/id,replace. none takes back what the kind says. */ unique?: string;
  /** smtp, tenant=acme, or tenant by /tenant. */ limits?: string[];
  /** Stored beside the arguments. */ metadata?: Record<string, unknown>;
  /** A line for people. */ description?: string;
  correlation?: string; urn?: string; source?: string;
  /** The instant after which no attempt begins. */ startBy?: Date | string;
  /** The same, counted from when the job is due. */ startWithin?: Duration;
}

/** One of many jobs that are enqueued together. */
export type NewJob = EnqueueOptions & { kind: string; args?: unknown };

/** Returns a job with the names that the API and SQL use. */
export function named(job: NewJob): Record<string, unknown> {
  return Object.fromEntries(Object.entries(job).map(([name, value]) => [name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase()), value]));
}

/** What is needed of a connection to PostgreSQL: a Client, PoolClient or Pool of pg has it. */
export type Queryable = { query(text: string, values: unknown[]): Promise<{ rows: any[] }> };

const statement = `select stint.enqueue(j.kind, coalesce(j.args, '{}'), queue => j.queue, priority => j.priority, run_at => j.run_at, delay => j.delay,
  retry => j.retry, timeout => j.timeout, tags => j.tags, urn => j.urn, source => j.source, metadata => j.metadata, idempotency_key => j.idempotency_key,
  correlation => j.correlation, start_by => j.start_by, start_within => j.start_within, description => j.description, uniqueness => j."unique", limits => j.limits) as id
from jsonb_to_recordset($1::jsonb) as j(kind text, args jsonb, queue text, priority integer, run_at timestamptz, delay interval,
  retry text, timeout interval, tags text[], urn text, source text, metadata jsonb, idempotency_key text,
  correlation text, start_by timestamptz, start_within interval, description text, "unique" text, limits text[])`;

/** Enqueues jobs in the transaction that the connection is in, by one statement. Returns their ids, in their order. */
export async function enqueueMany(connection: Queryable, jobs: NewJob[]): Promise<number[]> {
  if (jobs.length === 0) return [];
  const { rows } = await connection.query(statement, [JSON.stringify(jobs.map(named))]);
  return rows.map((row) => Number(row.id));
}

/** Enqueues a job in the transaction that the connection is in: it exists if and when that commits. Returns its id; of a duplicate, the id of the job that is there. */
export async function enqueue(connection: Queryable, kind: string, args: unknown = {}, options: EnqueueOptions = {}): Promise<number> {
  return (await enqueueMany(connection, [{ ...options, kind, args }]))[0]!;
}
