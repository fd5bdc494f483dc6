import { hostname } from "node:os";
import { Beats } from "./beats.js";
import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import { GatewayError } from "./errors.js";
import { type GatewayOptions, Gateways } from "./gateway.js";
import { Job } from "./job.js";
import { Member, type Owner } from "./member.js";
import type { Joined } from "./protocol.js";
import { perform, problem, type Run } from "./run.js";

export interface WorkerOptions extends GatewayOptions {
  /** Only jobs of these queues; all unless given. */
  queues?: string[];
  /** How many jobs run at once: 10 unless given, 1000 at most. */
  slots?: number;
  /** The name in the roster. */
  instance?: string;
  /** The version of your program, for people who look. */
  version?: string;
  /** After so long without a beat the worker counts as dead: 30s unless given, from 5s to 15m. */
  timeToLive?: Duration;
  /** How long jobs may go on after stop: 30s unless given. */
  grace?: Duration;
  /** Is told what goes wrong between the worker and its gateway, in one line: console.error unless given. */
  report?: (problem: string) => void;
}

/** Defaults of the jobs of a kind. They count if nobody has declared the kind before. */
export interface KindOptions {
  queue?: string;
  /** Lower first. */
  priority?: number;
  /** What happens after a failure: none, fixed:2:1s, exponential:10:1m, … */
  retry?: string;
  timeout?: Duration;
  /** How often a job may be lost with a worker that died; 0 is at most once. */
  maxLosses?: number;
}

export type Handler<Args, Result> = (job: Job<Args>) => Promise<Result> | Result;

/** Performs jobs: an engine of the roster that gets its jobs from a gateway over HTTP. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #slots: number;
  readonly #kinds = new Map<string, { handler: Handler<unknown, unknown>; options: KindOptions }>();
  readonly #gateways: Gateways;
  readonly #members = new Map<string, Member>();
  readonly #runs = new Set<Run>();
  readonly #closing = new AbortController();
  readonly #killed = new AbortController();
  readonly #owner: Owner;
  #beats: Beats | undefined;
  #current: Member | undefined;
  #joining = false;
  #idle: (() => void) | undefined;
  #stopping: Promise<void> | undefined;
  #ended: () => void = () => {};
  readonly #end = new Promise<void>((resolve) => (this.#ended = resolve));

  constructor(options: WorkerOptions = {}) {
    this.#options = options;
    this.#slots = options.slots ?? 10;
    if (!Number.isInteger(this.#slots) || this.#slots < 1 || this.#slots > 1000) throw new RangeError("slots must be from 1 to 1000");
    milliseconds(options.grace ?? "30s");
    this.#gateways = new Gateways(options);
    const worker = this;
    this.#owner = {
      gateways: this.#gateways,
      closing: this.#closing.signal,
      get beats() {
        return worker.#beats!;
      },
      free: (freed = 0) => (this.#closing.signal.aborted ? 0 : Math.max(0, this.#slots - this.#runs.size + freed)),
      take: (run) => void this.#perform(run),
      release: (run) => this.#release(run),
      drain: () => void this.#stop(),
      left: (member) => {
        if (this.#current === member) this.#current = undefined;
        void this.#join();
      },
      report: (problem) => this.#report(problem),
    };
  }

  /** Declares the handler of a kind. What it returns is the job's result, as JSON. Call it before start. */
  handle<Args = any, Result = unknown>(kind: string, handler: Handler<Args, Result>, options: KindOptions = {}): this {
    if (this.#kinds.has(kind)) throw new TypeError(`the kind ${kind} has a handler already`);
    this.#kinds.set(kind, { handler: handler as Handler<unknown, unknown>, options });
    return this;
  }

  /** Works until SIGTERM or SIGINT, or until somebody drains the worker. A second signal ends the process at once. */
  async run(): Promise<void> {
    let signals = 0;
    const onSignal = (name: NodeJS.Signals) => {
      if (++signals > 1) process.exit(name === "SIGINT" ? 130 : 143);
      void this.stop();
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.start();
      await this.#end;
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
  }

  /** Joins the roster, and returns when that is done. It waits for a gateway that does not answer yet. */
  async start(): Promise<void> {
    if (this.#beats !== undefined) throw new Error("the worker was started before");
    if (this.#kinds.size === 0) throw new Error("the worker has no handlers");
    this.#startBeats();
    try {
      await this.#join(true);
    } catch (err) {
      await this.#beats!.close();
      throw err;
    }
  }

  /** Claims no more, lets jobs go on for the grace, then aborts them and hands them back. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#killed.abort(), milliseconds(this.#options.grace ?? "30s"));
    await this.#stop();
    clearTimeout(timer);
  }

  /** Resolves when the worker has stopped, or was drained. */
  get stopped(): Promise<void> {
    return this.#end;
  }

  #report(problem: string): void {
    (this.#options.report ?? ((text) => console.error(`stint: ${text}`)))(problem);
  }

  #startBeats(): void {
    this.#beats = new Beats(
      this.#gateways.options,
      (message) => {
        const member = this.#members.get(message.worker);
        if ("problem" in message) this.#report(message.problem);
        else if ("news" in message) member?.hear(message.news);
        else if (message.left === "moved") member?.move();
        else {
          this.#report(message.left === "gone" ? "the worker was buried: it stops what it ran" : "no beat succeeded for too long: the worker stops what it ran");
          member?.lose();
        }
      },
      (err) => {
        this.#report(`the thread of the beats broke, what runs is stopped: ${err.message}`);
        setTimeout(() => {
          this.#startBeats();
          for (const member of this.#members.values()) member.lose();
        }, 1_000);
      },
    );
  }

  async #join(first = false): Promise<void> {
    if (this.#joining) return;
    this.#joining = true;
    try {
      for (let failures = 0; !this.#closing.signal.aborted && this.#current === undefined; failures++) {
        try {
          await this.#joinOnce();
        } catch (err) {
          if (this.#closing.signal.aborted) return;
          if (first && err instanceof GatewayError && !err.passes) throw err;
          if (failures === 0) this.#report(`the worker cannot join: ${(err as Error).message}`);
          await pause(backoff(failures), this.#closing.signal);
        }
      }
    } finally {
      this.#joining = false;
    }
  }

  async #joinOnce(): Promise<void> {
    const { queues, instance, version, timeToLive = "30s" } = this.#options;
    const kinds = [...this.#kinds].map(([name, { options: { maxLosses, ...options } }]) => ({ name, ...options, max_losses: maxLosses }));
    const body = { kinds, queues, slots: this.#slots, instance, version, host: hostname(), pid: process.pid, time_to_live: timeToLive };
    const at = this.#gateways.at;
    const joined = await this.#gateways.call<Joined>("POST", "/workers", { body, at });
    const member = new Member(joined.worker, at, this.#owner);
    if (this.#closing.signal.aborted) return member.quit();
    for (const [id, old] of this.#members) if (old.state === "gone") this.#members.delete(id);
    this.#members.set(joined.worker, member);
    this.#current = member;
    this.#beats!.tell({ do: "join", worker: joined.worker, every: joined.beat_every / 1e6, ttl: joined.time_to_live / 1e6 });
    member.poll();
  }

  async #perform(run: Run): Promise<void> {
    this.#runs.add(run);
    const kind = this.#kinds.get(run.claimed.kind);
    const outcome = kind === undefined ? problem("UnknownKind", `this worker has no handler of ${run.claimed.kind}`) : await perform(run, () => kind.handler(new Job(run)));
    if (outcome !== undefined && run.said) await this.#beats!.flush(run.member.worker, run.receipt);
    if (outcome !== undefined && run.member.state !== "gone" && run.over !== "lost") return run.member.finish(run, outcome);
    run.member.unlist([run]);
    this.#release(run);
  }

  #release(run: Run): void {
    this.#runs.delete(run);
    if (this.#runs.size === 0) this.#idle?.();
    this.#current?.poll();
  }

  #stop(): Promise<void> {
    return (this.#stopping ??= this.#shut());
  }

  async #shut(): Promise<void> {
    this.#closing.abort();
    const members = [...this.#members.values()];
    const idle = new Promise<void>((resolve) => (this.#runs.size === 0 ? resolve() : (this.#idle = resolve)));
    await Promise.all(members.map((member) => member.endPoll()));
    const killed = new Promise<void>((resolve) => this.#killed.signal.addEventListener("abort", () => resolve(), { once: true }));
    if (!this.#killed.signal.aborted) await Promise.race([idle, killed]);
    for (const run of this.#runs) run.stop("stopping");
    if (this.#runs.size > 0) await Promise.race([idle, pause(2_000)]);
    await Promise.all(members.map((member) => member.quit()));
    await this.#beats?.close();
    this.#ended();
  }
}
