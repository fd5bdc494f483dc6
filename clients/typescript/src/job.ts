import type { Duration } from "./duration.js";
import { NoRetry, NoSignal, Suspended } from "./errors.js";
import type { Run } from "./run.js";

/** A job that runs, as its handler sees it. */
export class Job<Args = unknown> {
  readonly id: number;
  readonly kind: string;
  readonly queue: string;
  readonly args: Args;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly correlation: string;
  /** Whether an earlier run was lost, so that its work may have been done in part. */
  readonly mayHaveRun: boolean;
  readonly created: Date;
  /** How long the attempt may take, in milliseconds; 0 is without a bound. */
  readonly timeout: number;
  /** Aborted when the run must stop; its reason is a Stopped. Pass it to fetch and the like. */
  readonly signal: AbortSignal;
  readonly #run: Run;
  readonly #names = new Set<string>();

  /** @internal */
  constructor(run: Run) {
    const { id, kind, queue, args, attempt, tags, metadata, correlation, may_have_run, created, timeout } = run.claimed;
    [this.id, this.kind, this.queue, this.args, this.attempt] = [id, kind, queue, args as Args, attempt];
    [this.tags, this.metadata, this.correlation, this.mayHaveRun] = [tags ?? [], metadata ?? {}, correlation ?? "", may_have_run ?? false];
    [this.created, this.timeout, this.signal, this.#run] = [new Date(created), (timeout ?? 0) / 1e6, run.signal, run];
  }

  /** Says how much is done, from 0 to 1. The last call counts; people see it within a second or two. */
  progress(fraction: number, text = ""): void {
    this.#run.say({ fraction: Math.min(1, Math.max(0, fraction)) || 0, text });
  }

  /** Logs a line that people see with the job. */
  log(line: string): void {
    this.#run.say(undefined, String(line).slice(0, 4096));
  }

  /**
   * Does a part of the job once: what f returns is recorded as JSON, and a later run of the job gets
   * that without a call of f. Only successes are recorded. A name can be used once in a run.
   */
  async step<T>(name: string, f: () => Promise<T> | T): Promise<T> {
    this.#use(name);
    const recorded = this.#run.claimed.steps ?? {};
    if (Object.hasOwn(recorded, name)) return recorded[name] as T;
    const value = (await f()) ?? null;
    return (await this.#run.ask<{ value: T }>("step", { name, value })).value;
  }

  /** Waits without a slot: a wait of more than 5 seconds ends the run by a Suspended, and the job runs again from the top. */
  async sleep(name: string, duration: Duration): Promise<void> {
    this.#use(name);
    await this.#run.ask("sleep", { name, for: duration });
  }

  /** Waits for a signal in the same way, and returns its value. The signal has the step's name unless one is given. Throws NoSignal when the timeout is over. */
  async awaitSignal<T = unknown>(name: string, { timeout, signal = name }: { timeout: Duration; signal?: string }): Promise<T> {
    this.#use(name);
    const { value, timed_out } = await this.#run.ask<{ value?: T; timed_out?: boolean }>("await", { name, signal, timeout });
    if (timed_out) throw new NoSignal(`no signal ${signal} came within ${timeout}`);
    return value as T;
  }

  #use(name: string): void {
    if (this.#run.over !== undefined) throw new Suspended("the run is over");
    this.signal.throwIfAborted();
    if (this.#names.has(name)) throw new NoRetry(`the step ${JSON.stringify(name)} is there twice`);
    this.#names.add(name);
  }
}
