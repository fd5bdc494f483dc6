import { hostname } from "node:os";
import { Worker as Thread } from "node:worker_threads";
import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import type { JobOptions } from "./enqueue.js";
import { isPassing } from "./errors.js";
import { type GatewayOptions, Gateways } from "./gateway.js";
import type { Job } from "./job.js";
import { Member } from "./member.js";
import { perform } from "./outcome.js";
import type { FromBeats } from "./protocol.js";

export interface WorkerOptions extends GatewayOptions {
  /** Only jobs of these queues; all unless given. */ queues?: string[];
  /** How many jobs run at once: 10 unless given, 1000 at most. */ slots?: number;
  /** The name in the roster. */ instance?: string;
  /** The version of your program, for people who look. */ version?: string;
  /** After so long without a beat the worker counts as dead: 30s unless given, from 5s to 15m. */ timeToLive?: Duration;
  /** How long jobs may go on after stop: 30s unless given. */ grace?: Duration;
  /** Is told what goes wrong between the worker and its gateway, in one line: console.error unless given. */ report?: (problem: string) => void;
}

/** Defaults of the jobs of a kind, if nobody has declared it before. maxLosses is how often a job may be lost with a worker that died; 0 is at most once. */
export type KindOptions = JobOptions & { maxLosses?: number };
export type Handler<Args, Result> = (job: Job<Args>) => Promise<Result> | Result;

/** Performs jobs: an engine of the roster that gets its jobs from a gateway over HTTP. */
export class Worker {
  /** @internal */ readonly gateways: Gateways;
  /** @internal */ readonly report: (problem: string) => void;
  /** @internal */ beats: Thread | undefined;
  readonly #options: WorkerOptions;
  readonly #grace: number;
  readonly #kinds = new Map<string, { handler: Handler<any, unknown>; options: KindOptions }>();
  readonly #members = new Map<string, Member>();
  readonly #jobs = new Set<Job>(); // whose handlers have not returned
  readonly #closing = new AbortController();
  #current: Member | undefined;
  #started = false;
  #stopping: Promise<void> | undefined;
  #ended = () => {};
  /** Resolves when the worker has stopped, or was drained. */
  readonly stopped = new Promise<void>((resolve) => (this.#ended = resolve));

  constructor(options: WorkerOptions = {}) {
    this.#options = { slots: 10, ...options };
    this.report = options.report ?? ((problem) => console.error(`stint: ${problem}`));
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
    let signals = 0;
    const onSignal = (name: NodeJS.Signals) => void (signals++ === 0 ? this.stop() : process.exit(name === "SIGINT" ? 130 : 143));
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    await this.start().then(() => this.stopped).finally(() => process.off("SIGTERM", onSignal).off("SIGINT", onSignal));
  }

  /** Joins the roster, and returns when that is done. It waits for a gateway that does not answer yet. */
  async start(): Promise<void> {
    if (this.#started || this.#kinds.size === 0) throw new Error(this.#started ? "the worker was started before" : "the worker has no handlers");
    this.#started = true;
    await this.#join(isPassing);
  }

  /** Claims no more, lets jobs go on for the grace, then aborts them and hands them back. */
  async stop(): Promise<void> {
    const timer = setTimeout(async () => {
      for (const job of this.#jobs) job.stop("stopping");
      await pause(2_000); // for those that heed it
      for (const member of this.#members.values()) void member.quit();
    }, this.#grace);
    await this.drain();
    clearTimeout(timer);
  }

  /** @internal Ends what runs, however long it takes, and leaves. */
  drain(): Promise<void> { return (this.#stopping ??= this.#shut()); }

  async #shut(): Promise<void> {
    this.#closing.abort();
    const members = [...this.#members.values()];
    for (const member of members) member.move();
    await Promise.all(members.map((member) => member.gone));
    await this.beats?.terminate();
    this.#ended();
  }

  /** @internal How many more handlers may be called. */ get room(): number { return Math.max(0, this.#options.slots! - this.#jobs.size); }

  /** @internal */ async perform(job: Job): Promise<void> {
    this.#jobs.add(job);
    const outcome = await perform(job, this.#kinds.get(job.kind)!.handler);
    this.#jobs.delete(job);
    void job.member.end(job, outcome);
    if (job.member !== this.#current) this.#current?.trade();
  }

  /** @internal Joins anew after a membership has ended that claimed. */ left(member: Member): void {
    if (member.state === "gone") this.#members.delete(member.id);
    if (member !== this.#current) return;
    this.#current = undefined;
    void this.#join();
  }

  /** Joins; a failure that goesOn is no reason to give up. */
  async #join(goesOn = (_: unknown) => true): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted; failures++) {
      try {
        return await this.#joinOnce();
      } catch (err) {
        if (!goesOn(err)) throw err;
        if (failures === 0) this.report(`the worker cannot join: ${(err as Error).message}`);
        await pause(backoff(failures), this.#closing.signal);
      }
    }
  }

  async #joinOnce(): Promise<void> {
    const { gateway, token, queues, slots, instance, version, timeToLive } = this.#options;
    const kinds = [...this.#kinds].map(([name, { options: { maxLosses, ...options } }]) => ({ name, ...options, max_losses: maxLosses }));
    const body = { kinds, queues, slots, instance, version, host: hostname(), pid: process.pid, time_to_live: timeToLive };
    const home = this.gateways.at;
    const joined = await this.gateways.call<{ worker: string; time_to_live: Duration }>("POST", "/workers", { body, at: home });
    const ttl = milliseconds(joined.time_to_live);
    const member = new Member(joined.worker, home, ttl, this);
    if (this.#closing.signal.aborted) return member.quit();
    this.beats ??= new Thread(new URL("./beat-thread.js", import.meta.url), { workerData: { gateway, token }, name: "stint-beats" })
      .on("message", (message: FromBeats) => this.#members.get(message.worker)?.heard(message));
    this.#members.set(member.id, member);
    this.#current = member;
    member.tellBeats({ join: { home, ttl } });
    member.trade();
  }
}
