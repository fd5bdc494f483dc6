import { backoff, pause } from "./duration.js";
import { Cancel, GatewayError, NoRetry, Snooze, Stopped, type StopReason, Suspended } from "./errors.js";
import { isGone, isMoved } from "./gateway.js";
import type { Member } from "./member.js";
import type { ClaimedJob, Said } from "./protocol.js";

/** One run of a job: what its handler does from here on goes to the membership that claimed it. */
export class Run {
  readonly #abort = new AbortController();
  /** Set when what the handler returns does not count any more. */
  over: "suspended" | "returned" | "lost" | undefined;
  /** Whether it logged something or said how far it is. */
  said = false;

  constructor(
    readonly claimed: ClaimedJob,
    readonly member: Member,
  ) {}

  get receipt(): string {
    return this.claimed.receipt;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  stop(why: StopReason): void {
    if (why === "lost") this.over ??= "lost";
    if (!this.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  say(progress: Said["progress"], line?: string): void {
    if (this.over !== undefined) return;
    this.said = true;
    this.member.say(this, progress, line);
  }

  /** Calls step, sleep or await. Throws Suspended if that ended the run. */
  async ask<T>(path: "step" | "sleep" | "await", body: object): Promise<T> {
    for (let failures = 0; ; failures++) {
      if (this.over !== undefined) throw new Suspended("the run is over");
      this.signal.throwIfAborted();
      try {
        const answer = await this.member.call<T & { suspended?: boolean }>(path, { body: { receipt: this.receipt, ...body }, signal: this.signal, at: this.member.home });
        if (!answer.suspended) return answer;
        this.over = "suspended";
        this.member.unlist([this]);
        throw new Suspended("the run is over, the job comes again");
      } catch (err) {
        if (!(err instanceof GatewayError) || this.over !== undefined) throw err;
        if (isGone(err)) this.member.lose();
        else if (err.status === 409) this.stop("lost");
        else if (isMoved(err) || (err.passes && this.member.state !== "in")) {
          this.over = "returned";
          this.member.move();
          throw new Suspended("the gateway has changed, the job comes again");
        } else if (!err.passes) throw err;
        else await pause(backoff(failures), this.signal);
      }
    }
  }
}

/** Runs the handler. Returns what to finish the run with, as JSON without braces, or undefined if nothing is to be sent. */
export async function perform(run: Run, handle: () => unknown): Promise<string | undefined> {
  let outcome: string;
  try {
    const result = (await handle()) ?? null;
    outcome = `"result":${JSON.stringify(result) ?? "null"}`;
  } catch (err) {
    outcome = failure(err, run);
  }
  if (run.over === "returned") return `"return":true`;
  return run.over === undefined ? outcome : undefined;
}

function failure(err: unknown, run: Run): string {
  if (err instanceof Snooze) return `"snooze":${JSON.stringify(err.wait)}`;
  if (err instanceof Cancel) return `"cancel":${JSON.stringify(err.message)}`;
  const stopped = run.signal.reason instanceof Stopped ? run.signal.reason : undefined;
  if (stopped?.why === "cancelled") return `"cancel":"cancelled"`;
  if (stopped?.why === "stopping") return `"return":true`;
  if (!(err instanceof Error)) return problem("Error", String(err));
  if (stopped?.why === "timeout" && (err === stopped || err.name === "AbortError")) return problem("Timeout", stopped.message);
  const named = err instanceof NoRetry && err.cause instanceof Error ? err.cause : err;
  return problem(named.constructor.name, err.message, stackOf(err), !(err instanceof NoRetry));
}

export function problem(kind: string, message: string, stack?: string, retry = true): string {
  return `"error":${JSON.stringify({ message, class: kind, stack, ...(retry ? {} : { retry }) })}`;
}

/** Returns the stack of an error and those of its causes. */
function stackOf(err: Error): string {
  const stacks: string[] = [];
  for (let e: unknown = err; e instanceof Error && stacks.length < 5; e = e.cause) stacks.push(e.stack ?? e.message);
  return stacks.join("\ncaused by: ").slice(0, 16_384);
}
