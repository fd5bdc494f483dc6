import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import { type EnqueueOptions, named, type NewJob } from "./enqueue.js";
import { isPassing, JobFailed, NotEnded } from "./errors.js";
import { type GatewayOptions, Gateways } from "./gateway.js";

/** maxLosses is how often the job may be lost with a worker that died, 0 is at most once; force is for a kind that no worker has declared yet. */
export type ClientEnqueueOptions = EnqueueOptions & { maxLosses?: number; force?: boolean };

/** A job as the API shows it. */
export interface JobInfo {
  id: number; kind: string; queue: string;
  state: "scheduled" | "retrying" | "blocked" | "available" | "running" | "completed" | "failed" | "cancelled";
  args: unknown; attempt: number;
  attempts?: { attempt: number; outcome: string; final: boolean; result?: unknown; error?: { class: string; message: string; stack?: string }; reason?: string }[];
  reason?: string;
  [field: string]: unknown;
}

/** Enqueues jobs and asks about them over HTTP. */
export class Client {
  readonly #gateways: Gateways;

  constructor(options: GatewayOptions = {}) { this.#gateways = new Gateways(options); }

  /** Enqueues a job and returns its id; of a duplicate, the id of the job that is there. Give an idempotencyKey if you repeat an enqueue that failed. */
  async enqueue(kind: string, args: unknown = {}, { force = false, ...options }: ClientEnqueueOptions = {}): Promise<number> {
    return (await this.enqueueMany([{ ...options, kind, args }], { force }))[0]!;
  }

  /** Enqueues all of the jobs or none, 10,000 at most. Returns their ids, in their order. */
  async enqueueMany(jobs: (NewJob & { maxLosses?: number })[], { force = false } = {}): Promise<number[]> {
    if (jobs.length === 0) return [];
    const { items: receipts } = await this.#gateways.call<{ items: { id: number }[] }>("POST", "/jobs", { body: { jobs: jobs.map(named), force } });
    return receipts.map((receipt) => receipt.id);
  }

  /** Shows a job with all of its attempts. */
  job(id: number): Promise<JobInfo> { return this.#gateways.call("GET", `/jobs/${id}`); }

  /** Waits until the job has ended, and returns its result. Throws JobFailed if it failed or was cancelled, NotEnded after the timeout. */
  async result<T = unknown>(id: number, { timeout }: { timeout?: Duration } = {}): Promise<T> {
    const until = timeout === undefined ? Infinity : performance.now() + milliseconds(timeout);
    for (let failures = 0, left = 1; left > 0; ) {
      left = Math.max(0, until - performance.now());
      const wait = Math.min(30_000, Math.ceil(left));
      try {
        const { state, attempts, reason } = await this.#gateways.call<JobInfo>("GET", `/jobs/${id}?wait=${wait}ms`, { timeout: wait + 10_000 });
        const last = attempts?.at(-1);
        if (state === "completed") return (last?.result ?? null) as T;
        if (state === "failed" || state === "cancelled") throw new JobFailed(id, state, last?.error, last?.reason ?? reason);
        failures = 0;
      } catch (err) {
        if (!isPassing(err) || left === 0) throw err;
        await pause(Math.min(left, backoff(failures++)));
      }
    }
    throw new NotEnded(`job ${id} has not ended within ${timeout}`);
  }

  /** Sends a signal to a job. Of several with the same key the first counts, so with a key it may be repeated. */
  async signal(id: number, name: string, value: unknown = null, { key }: { key?: string } = {}): Promise<void> {
    await this.#gateways.call("POST", `/jobs/${id}/signal`, { body: { name, value, key } });
  }

  /** Cancels a job; one that runs is asked to stop. Returns what came of it, such as "cancelled". */
  async cancel(id: number, why?: string): Promise<string> {
    const { answers } = await this.#gateways.call<{ answers?: Record<string, string> }>("POST", "/jobs/cancel", { body: { ids: [id], why } });
    return answers?.[id] ?? "";
  }
}
