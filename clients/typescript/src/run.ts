import { backoff, pause } from "./duration.js";
import { Cancel, isGone, isMoved, isPassing, NoRetry, Snooze, Stopped, type StopReason, Suspended } from "./errors.js";
import type { Member } from "./member.js";
import type { ClaimedJob, Said } from "./protocol.js";

const maxLines = 1_000; // that wait for a beat; the oldest of more are left out

/** One run of a job. What its handler does from here on goes to the membership that claimed it. */
export class Run {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal = this.#abort.signal;
  /** Set when what the handler returns does not count any more. */
  over: "suspended" | "returned" | "lost" | undefined;
  /** What no beat has taken yet. */
  said: Said | undefined;

  constructor(readonly claimed: ClaimedJob, readonly member: Member) {}

  get receipt(): string {
    return this.claimed.receipt;
  }

  stop(why: StopReason): void {
    if (why === "lost") this.over ??= "lost";
    if (!this.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  say(progress: Said["progress"], line?: string): void {
    if (this.over !== undefined) return;
    this.said ??= {};
    if (progress !== undefined) this.said.progress = progress;
    if (line !== undefined && (this.said.log ??= []).push(line) > maxLines) this.said.log.shift();
    this.member.speakSoon();
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
        if (this.over !== undefined) throw err;
        if (isGone(err)) this.stop("lost"); // the run or the whole worker: beats tell which
        else if (isMoved(err) || (isPassing(err) && this.member.state !== "in")) {
          this.over = "returned";
          this.member.move();
          throw new Suspended("the gateway has changed, the job comes again");
        } else if (!isPassing(err)) throw err;
        else await pause(backoff(failures), this.signal);
      }
    }
  }

  /** Calls the handler. Returns the outcome to send, as a member of a JSON object, or undefined if none is to be sent. */
  async perform(handler: () => unknown): Promise<string | undefined> {
    let outcome: string;
    try {
      outcome = `"result":${JSON.stringify((await handler()) ?? null) ?? "null"}`;
    } catch (err) {
      outcome = this.#failure(err);
    }
    if (this.over === "returned") return `"return":true`;
    return this.over === undefined ? outcome : undefined;
  }

  #failure(err: unknown): string {
    if (err instanceof Snooze) return `"snooze":${JSON.stringify(err.wait)}`;
    if (err instanceof Cancel) return `"cancel":${JSON.stringify(err.message)}`;
    const stopped = this.signal.reason as Stopped | undefined;
    if (stopped?.why === "cancelled") return `"cancel":"cancelled"`;
    if (stopped?.why === "stopping") return `"return":true`;
    if (!(err instanceof Error)) return problem("Error", String(err));
    if (stopped?.why === "timeout" && (err === stopped || err.name === "AbortError")) return problem("Timeout", stopped.message);
    const named = err instanceof NoRetry && err.cause instanceof Error ? err.cause : err;
    const stacks: string[] = [];
    for (let e: unknown = err; e instanceof Error && stacks.length < 5; e = e.cause) stacks.push(e.stack ?? e.message);
    return problem(named.constructor.name, err.message, stacks.join("\ncaused by: ").slice(0, 16_384), err instanceof NoRetry ? false : undefined);
  }
}

/** Returns a failed outcome. */
export function problem(name: string, message: string, stack?: string, retry?: false): string {
  return `"error":${JSON.stringify({ message, class: name, stack, retry })}`;
}
