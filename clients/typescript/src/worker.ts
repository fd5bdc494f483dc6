import { hostname } from "node:os";
import { Worker as Thread } from "node:worker_threads";
import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import type { JobOptions } from "./enqueue.js";
import { isPassing } from "./errors.js";
import { type GatewayOptions, Gateways } from "./gateway.js";
import { Job } from "./job.js";
import { Member } from "./member.js";
import type { FromBeats, ToBeats } from "./protocol.js";
import { problem, type Run } from "./run.js";

export interface WorkerOptions extends GatewayOptions {
  /** Only jobs of these queues; all unless given. */ queues?: string[];
  /** How many jobs run at once: 10 unless given, 1000 at most. */ slots?: number;
  /** The name in the roster. */ instance?: string;
  /** The version of your program, for people who look. */ version?: string;
  /** After so long without a beat the worker counts as dead: 30s unless given, from 5s to 15m. */ timeToLive?: Duration;
  /** How long jobs may go on after stop: 30s unless given. */ grace?: Duration;
  /** Is told what goes wrong between the worker and its gateway, in one line: console.error unless given. */ report?: (problem: string) => void;
}

/** Defaults of the jobs of a kind. They count if nobody has declared the kind before. */
export interface KindOptions extends JobOptions {
  /** How often a job may be lost with a worker that died; 0 is at most once. */ maxLosses?: number;
}

export type Handler<Args, Result> = (job: Job<Args>) => Promise<Result> | Result;

/** Performs jobs: an engine of the roster that gets its jobs from a gateway over HTTP. */
export class Worker {
  /** @internal */ readonly gateways: Gateways;
  /** @internal */ readonly closing = new AbortController();
  readonly #options: WorkerOptions;
  readonly #grace: number;
  readonly #kinds = new Map<string, { handler: Handler<any, unknown>; options: KindOptions }>();
  readonly #members = new Map<string, Member>();
  readonly #runs = new Set<Run>();
  readonly #graceOver = new AbortController();
  #beats: Thread | undefined;
  #current: Member | undefined;
  #joining = false;
  #idle = () => {};
  #stopping: Promise<void> | undefined;
  #ended = () => {};

  /** Resolves when the worker has stopped, or was drained. */
  readonly stopped = new Promise<void>((resolve) => (this.#ended = resolve));

  constructor(options: WorkerOptions = {}) {
    this.#options = { slots: 10, ...options };
    this.#grace = milliseconds(options.grace ?? "30s");
    this.gateways = new Gateways(options);
  }

  /** Declares the handler of a kind, before start. What it returns is the job's result, as JSON. */
  handle<Args = any, Result = unknown>(kind: string, handler: Handler<Args, Result>, options: KindOptions = {}): this {
    if (this.#kinds.has(kind)) throw new TypeError(`the kind ${kind} has a handler already`);
    this.#kinds.set(kind, { handler, options });
    return this;
  }

  /** Works until SIGTERM or SIGINT, or until somebody drains the worker. A second signal ends the process at once. */
  async run(): Promise<void> {
    let asked = false;
    const onSignal = (name: NodeJS.Signals) => {
      if (asked) process.exit(name === "SIGINT" ? 130 : 143);
      asked = true;
      void this.stop();
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.start();
      await this.stopped;
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
  }

  /** Joins the roster, and returns when that is done. It waits for a gateway that does not answer yet. */
  async start(): Promise<void> {
    if (this.#joining || this.#current || this.#stopping) throw new Error("the worker was started before");
    if (this.#kinds.size === 0) throw new Error("the worker has no handlers");
    await this.#join(true);
  }

  /** Claims no more, lets jobs go on for the grace, then aborts them and hands them back. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#graceOver.abort(), this.#grace);
    await this.drain();
    clearTimeout(timer);
  }

  /** @internal */ report(problem: string): void {
    (this.#options.report ?? ((text) => console.error(`stint: ${text}`)))(problem);
  }

  /** @internal How many slots are free, with those that a finish is about to free; 0 when no more is to be claimed. */
  free(freed = 0): number {
    return this.closing.signal.aborted ? 0 : Math.max(0, this.#options.slots! - this.#runs.size + freed);
  }

  /** @internal */ tellBeats(message: ToBeats): void {
    this.#beats?.postMessage(message);
  }

  /** @internal */ async perform(run: Run): Promise<void> {
    this.#runs.add(run);
    const { member, claimed } = run;
    const handler = this.#kinds.get(claimed.kind)?.handler;
    const outcome = handler ? await run.perform(() => handler(new Job(run))) : problem("UnknownKind", `this worker has no handler of ${claimed.kind}`);
    for (let tries = 0; outcome !== undefined && run.said && tries < 6; tries++) {
      if (tries > 0) await pause(backoff(tries));
      await member.speak();
    }
    if (outcome !== undefined && member.state !== "gone" && run.over !== "lost") return member.finish(run, outcome);
    member.unlist([run]);
    this.release(run);
  }

  /** @internal Takes back the slot of a run. */
  release(run: Run): void {
    this.#runs.delete(run);
    if (this.#runs.size === 0) this.#idle();
    this.#current?.poll();
  }

  /** @internal Ends what runs, however long it takes, and leaves. */
  drain(): Promise<void> {
    return (this.#stopping ??= this.#shut());
  }

  /** @internal Joins anew after a membership has ended that claimed. */
  left(member: Member): void {
    if (this.#current === member) this.#current = undefined;
    void this.#join();
  }

  #startBeats(): Thread {
    const thread = new Thread(new URL("./beat-thread.js", import.meta.url), { workerData: this.gateways.options, name: "stint-beats" });
    thread.on("message", ({ worker, news, left, problem }: FromBeats) => {
      const member = this.#members.get(worker);
      if (problem) this.report(problem);
      if (news) member?.hear(news);
      if (left === "moved") return member?.move();
      if (left) this.report(left === "gone" ? "the worker was buried: it stops what it ran" : "no beat succeeded for too long: the worker stops what it ran");
      if (left) member?.lose();
    });
    return thread.on("error", (err) => {
      this.report(`the thread of the beats broke, what runs is stopped: ${(err as Error).message}`);
      this.#beats = undefined;
      for (const member of this.#members.values()) member.lose();
    });
  }

  async #join(first = false): Promise<void> {
    if (this.#joining) return;
    this.#joining = true;
    try {
      for (let failures = 0; !this.closing.signal.aborted && this.#current === undefined; failures++) {
        try {
          await this.#joinOnce();
        } catch (err) {
          if (first && !isPassing(err)) throw err;
          if (failures === 0) this.report(`the worker cannot join: ${(err as Error).message}`);
          await pause(backoff(failures), this.closing.signal);
        }
      }
    } finally {
      this.#joining = false;
    }
  }

  async #joinOnce(): Promise<void> {
    const { queues, slots, instance, version, timeToLive } = this.#options;
    const kinds = [...this.#kinds].map(([name, { options: { maxLosses, ...options } }]) => ({ name, ...options, max_losses: maxLosses }));
    const body = { kinds, queues, slots, instance, version, host: hostname(), pid: process.pid, time_to_live: timeToLive };
    const at = this.gateways.at;
    const joined = await this.gateways.call<{ worker: string; time_to_live: number; beat_every: number }>("POST", "/workers", { body, at });
    const member = new Member(joined.worker, at, this);
    if (this.closing.signal.aborted) return member.quit();
    for (const [id, old] of this.#members) if (old.state === "gone") this.#members.delete(id);
    this.#beats ??= this.#startBeats();
    this.#members.set(member.id, member);
    this.#current = member;
    this.tellBeats({ worker: member.id, join: { every: joined.beat_every / 1e6, ttl: joined.time_to_live / 1e6 } });
    member.poll();
  }

  async #shut(): Promise<void> {
    this.closing.abort();
    const members = [...this.#members.values()];
    const idle = new Promise<void>((resolve) => (this.#runs.size === 0 ? resolve() : (this.#idle = resolve)));
    await Promise.all(members.map((member) => member.endPoll()));
    await Promise.race([idle, pause(2 ** 31 - 1, this.#graceOver.signal)]);
    this.#graceOver.abort();
    for (const run of this.#runs) run.stop("stopping");
    if (this.#runs.size > 0) await Promise.race([idle, pause(2_000)]);
    await Promise.all(members.map((member) => member.quit()));
    await this.#beats?.terminate();
    this.#ended();
  }
}
