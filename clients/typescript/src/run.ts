import { backoff, pause } from "./duration.js";
import { Cancel, isGone, isMoved, isPassing, NoRetry, Snooze, Stopped, type StopReason, Suspended } from "./errors.js";
import type { Member } from "./member.js";
import type { ClaimedJob } from "./protocol.js";

const maxResult = 1 << 20; // bytes that a gateway takes
const maxLines = 1_000; // that wait for a beat

/** One run of a job. What its handler does goes to the membership that claimed it. */
export class Run {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal = this.#abort.signal;
  /** Set when what the handler returns does not count any more. */
  over: "suspended" | "returned" | "lost" | undefined;
  progress: { fraction: number; text: string } | undefined;
  /** Lines that no beat has taken yet. */
  readonly log: string[] = [];
  /** Whether there is something to tell in a beat. */
  unsaid = false;

  constructor(readonly claimed: ClaimedJob, readonly member: Member) {}

  get receipt(): string {
    return this.claimed.receipt;
  }

  stop(why: StopReason): void {
    if (why === "lost") this.over ??= "lost";
    if (!this.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  say(progress?: Run["progress"], line?: string): void {
    if (this.over !== undefined) return;
    this.progress = progress ?? this.progress;
    if (line !== undefined && this.log.length < maxLines) this.log.push(line);
    this.unsaid = true;
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
        this.member.forget([this]);
      } catch (err) {
        if (this.over !== undefined) throw err;
        if (isGone(err)) this.stop("lost"); // the run or the whole worker: beats tell which
        else if (isMoved(err) || (isPassing(err) && this.member.state !== "in")) {
          this.over = "returned";
          this.member.move();
        } else if (!isPassing(err)) throw err;
        else await pause(backoff(failures), this.signal);
      }
    }
  }

  /** Calls the handler. Returns the outcome to send, as a member of a JSON object, or undefined if none is to be sent. */
  async perform(handler: () => unknown): Promise<string | undefined> {
    let outcome: string;
    try {
      outcome = resultOf(await handler());
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
    if (!(err instanceof Error)) return failed("Error", String(err));
    if (stopped?.why === "timeout" && (err === stopped || err.name === "AbortError")) return failed("Timeout", stopped.message);
    const named = err instanceof NoRetry && err.cause instanceof Error ? err.cause : err;
    const stacks: string[] = [];
    for (let e: unknown = err; e instanceof Error && stacks.length < 5; e = e.cause) stacks.push(e.stack ?? e.message);
    return failed(named.constructor.name, err.message, stacks.join("\ncaused by: ").slice(0, 16_384), err instanceof NoRetry ? false : undefined);
  }
}

function resultOf(value: unknown): string {
  const text = JSON.stringify(value ?? null) ?? "null";
  if (Buffer.byteLength(text) > maxResult) throw new RangeError(`the result has ${Buffer.byteLength(text)} bytes of JSON, and ${maxResult} are allowed`);
  return `"result":${text}`;
}

/** Returns a failed outcome. */
export function failed(name: string, message: string, stack?: string, retry?: false): string {
  return `"error":${JSON.stringify({ message: message.slice(0, 16_384), class: name, stack, retry })}`;
}
