import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import { type EnqueueOptions, named, type NewJob } from "./enqueue.js";
import { GatewayError, JobFailed, NotEnded } from "./errors.js";
import { type GatewayOptions, Gateways } from "./gateway.js";

export interface ClientEnqueueOptions extends EnqueueOptions {
  /** How often the job may be lost with a worker that died; 0 is at most once. */
  maxLosses?: number;
}

/** What an enqueue came to. */
export interface Receipt {
  id: number;
  /** No job was stored: this one is there, and in that state. */
  duplicate?: boolean;
  state?: string;
  /** The job that made room. */
  replaced?: number;
  cancelled?: number;
}

/** How an attempt ended. */
export interface Attempt {
  attempt: number;
  outcome: string;
  final: boolean;
  started: string;
  finished: string;
  instance: string;
  result?: unknown;
  error?: { class: string; message: string; stack?: string };
  reason?: string;
}

/** A job as the API shows it; the API's description has all fields. */
export interface JobInfo {
  id: number;
  kind: string;
  state: "scheduled" | "retrying" | "blocked" | "available" | "running" | "completed" | "failed" | "cancelled";
  queue: string;
  args: unknown;
  attempt: number;
  attempts?: Attempt[];
  reason?: string;
  tags?: string[];
  [field: string]: unknown;
}

const ended = new Set(["completed", "failed", "cancelled"]);

/** Enqueues jobs and asks about them over HTTP. */
export class Client {
  readonly #gateways: Gateways;

  constructor(options: GatewayOptions = {}) {
    this.#gateways = new Gateways(options);
  }

  /** Enqueues a job and returns its id; of a duplicate, the id of the job that is there. Give an idempotencyKey if you repeat an enqueue that failed. */
  async enqueue(kind: string, args: unknown = {}, options: ClientEnqueueOptions = {}): Promise<number> {
    const [receipt] = await this.enqueueMany([{ ...options, kind, args }]);
    return receipt!.id;
  }

  /** Enqueues all of the jobs or none, 10,000 at most. With force, also of kinds that no worker has declared yet. */
  async enqueueMany(jobs: (NewJob & ClientEnqueueOptions)[], { force = false } = {}): Promise<Receipt[]> {
    if (jobs.length === 0) return [];
    return this.#gateways.call<Receipt[]>("POST", "/jobs", { body: { jobs: jobs.map(named), ...(force && { force }) } });
  }

  /** Shows a job with all of its attempts. */
  job(id: number): Promise<JobInfo> {
    return this.#gateways.persist<JobInfo>("GET", `/jobs/${id}`);
  }

  /** Waits until the job has ended, and returns its result. Throws JobFailed if it failed or was cancelled, NotEnded after the timeout. */
  async result<T = unknown>(id: number, options: { timeout?: Duration; signal?: AbortSignal } = {}): Promise<T> {
    const until = options.timeout === undefined ? Infinity : performance.now() + milliseconds(options.timeout);
    for (let failures = 0; ; ) {
      const left = Math.max(0, until - performance.now());
      const wait = Math.min(30_000, Math.ceil(left));
      try {
        const job = await this.#gateways.call<JobInfo>("GET", `/jobs/${id}?wait=${wait}ms`, { timeout: wait + 10_000, ...(options.signal && { signal: options.signal }) });
        failures = 0;
        if (ended.has(job.state)) return resultOf<T>(job);
      } catch (err) {
        if (!(err instanceof GatewayError) || !err.passes || left === 0) throw err;
        await pause(Math.min(left, backoff(failures++)), options.signal);
        options.signal?.throwIfAborted();
      }
      if (left === 0) throw new NotEnded(`job ${id} has not ended within ${options.timeout}`);
    }
  }

  /** Sends a signal to a job. Of several with the same key the first counts, so with a key it may be repeated. */
  async signal(id: number, name: string, value: unknown = null, options: { key?: string } = {}): Promise<void> {
    await this.#gateways.call("POST", `/jobs/${id}/signal`, { body: { name, value, ...options } });
  }

  /** Cancels a job; one that runs is asked to stop. Returns what came of it, such as "cancelled". */
  async cancel(id: number, why?: string): Promise<string> {
    const done = await this.#gateways.call<{ answers?: Record<string, string> }>("POST", "/jobs/cancel", { body: { ids: [id], why } });
    return done.answers?.[id] ?? "";
  }
}

function resultOf<T>(job: JobInfo): T {
  const last = job.attempts?.at(-1);
  if (job.state === "completed") return (last?.result ?? null) as T;
  throw new JobFailed(job.id, job.state, last?.error, last?.reason ?? job.reason);
}
