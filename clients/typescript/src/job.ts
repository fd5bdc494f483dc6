import { backoff, type Duration, milliseconds, pause } from "./duration.js";
import { isGone, isMoved, isPassing, NoRetry, NoSignal, Stopped, type StopReason, Suspended } from "./errors.js";
import type { Member } from "./member.js";
import type { Said } from "./protocol.js";

/** One run of a job, as its handler sees it. */
export class Job<Args = unknown> {
  readonly id: number;
  readonly kind: string;
  readonly queue: string;
  readonly args: Args;
  /** Which attempt this is, from 1. */ readonly attempt: number;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly correlation: string;
  /** Whether an earlier run was lost, so that its work may have been done in part. */ readonly mayHaveRun: boolean;
  readonly created: Date;
  /** How long the attempt may take, in milliseconds; 0 is without a bound. */ readonly timeout: number;
  /** Aborted when the run must stop; its reason is a Stopped. Pass it to fetch and the like. */ readonly signal: AbortSignal;

  /** @internal */ readonly receipt: string;
  /** @internal Set when what the handler returns does not count any more. */ over: "suspended" | "returned" | "lost" | undefined;
  /** @internal */ spoke = false;
  /** @internal Called when all is said. */ flushed = () => {};
  readonly #abort = new AbortController();
  readonly #names = new Set<string>();
  readonly #steps: Record<string, unknown>;

  /** @internal */ constructor(claimed: Record<string, any>, /** @internal */ readonly member: Member) {
    const { receipt, id, kind, queue, args, attempt, tags = [], metadata = {}, correlation = "", may_have_run = false, created, timeout = "0s", steps = {} } = claimed;
    [this.receipt, this.id, this.kind, this.queue, this.args, this.attempt] = [receipt, id, kind, queue, args, attempt];
    [this.tags, this.metadata, this.correlation, this.mayHaveRun, this.created] = [tags, metadata, correlation, may_have_run, new Date(created)];
    [this.timeout, this.signal, this.#steps] = [milliseconds(timeout), this.#abort.signal, steps];
  }

  /** Says how much is done, from 0 to 1. The last call counts; people see it within a second or two. */
  progress(fraction: number, text = ""): void { this.#say({ progress: { fraction: Math.min(1, Math.max(0, fraction)) || 0, text }, log: [] }); }

  /** Logs a line that people see with the job. */
  log(line: string): void { this.#say({ log: [String(line).slice(0, 4096)] }); }

  /** Does a part of the job once: what f returns is recorded, and a later run gets that without a call of f. A name can be used once in a run. */
  async step<T>(name: string, f: () => Promise<T> | T): Promise<T> {
    this.#use(name);
    if (Object.hasOwn(this.#steps, name)) return this.#steps[name] as T;
    const value = (await f()) ?? null;
    return (await this.#ask<{ value: T }>("step", { name, value })).value;
  }

  /** Waits without a slot: a wait of more than 5 seconds ends the run by a Suspended, and the job runs again from the top. */
  async sleep(name: string, duration: Duration): Promise<void> { await this.#use(name).#ask("sleep", { name, for: duration }); }

  /** Waits for a signal in the same way, and returns its value. The signal has the step's name unless one is given. Throws NoSignal when the timeout is over. */
  async awaitSignal<T = unknown>(name: string, { timeout, signal = name }: { timeout: Duration; signal?: string }): Promise<T> {
    const { value, timed_out } = await this.#use(name).#ask<{ value?: T; timed_out?: boolean }>("await", { name, signal, timeout });
    if (timed_out) throw new NoSignal(`no signal ${signal} came within ${timeout}`);
    return value as T;
  }

  /** @internal */ stop(why: StopReason): void {
    if (why === "lost") this.over ??= "lost";
    if (!this.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  /** @internal Resolves when gateways have been told what the job said. */ flush(): Promise<void> {
    this.member.tellBeats({ flush: this.receipt });
    return new Promise((resolve) => (this.flushed = resolve));
  }

  #say(said: Said): void {
    if (this.over !== undefined) return;
    this.spoke = true;
    this.member.tellBeats({ say: { receipt: this.receipt, ...said } });
  }

  /** Notes that the run came to a step. */
  #use(name: string): this {
    this.#check();
    if (this.#names.has(name)) throw new NoRetry(`the step ${JSON.stringify(name)} is there twice`);
    this.#names.add(name);
    return this;
  }

  #check(): void {
    if (this.over !== undefined) throw new Suspended("the run is over, the job may come again");
    this.signal.throwIfAborted();
  }

  /** Calls step, sleep or await, again after a failure that passes. Throws Suspended if that ended the run. */
  async #ask<T>(path: "step" | "sleep" | "await", body: object): Promise<T> {
    for (let failures = 0; ; failures++) {
      this.#check();
      try {
        const answer = await this.member.call<T & { suspended?: boolean }>(path, { receipt: this.receipt, ...body }, { at: this.member.home });
        if (!answer.suspended) return answer;
        this.over = "suspended";
        this.member.forget([this.receipt]);
      } catch (err) {
        if (isGone(err)) this.stop("lost"); // the run or the whole worker: beats tell which
        else if (isMoved(err) || (isPassing(err) && this.member.state !== "in")) {
          this.over ??= "returned"; // it goes on at another gateway
          this.member.move();
        } else if (!isPassing(err)) throw err;
        else await pause(backoff(failures), this.signal);
      }
    }
  }
}
