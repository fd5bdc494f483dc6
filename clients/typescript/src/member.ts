import { backoff, now, pause } from "./duration.js";
import { isGone, isMoved, isRefused } from "./errors.js";
import type { CallOptions } from "./gateway.js";
import { Job } from "./job.js";
import { failed } from "./outcome.js";
import type { FromBeats, News, ToBeats } from "./protocol.js";
import type { Worker } from "./worker.js";

type Ended = { job: Job; outcome: string; refused?: true };

const batchLength = 1 << 22; // characters of outcomes in one call: a gateway reads 32 MiB

/**
 * A membership in the roster: one worker id. A worker gets a new one when its gateway was restarted; the old one
 * goes on until what it runs has ended.
 *
 * One call is always on its way: it says how jobs ended, if any did, and waits for the next ones. When
 * more jobs end a second call says so, upon which the gateway answers the first.
 */
export class Member {
  /** in: it claims. moved: it only ends what runs. gone: nothing of it counts any more. */
  state: "in" | "moved" | "gone" = "in";
  #leave = () => {};
  /** Resolves when it is gone. */
  readonly gone = new Promise<void>((resolve) => (this.#leave = resolve));
  readonly #running = new Map<string, Job>();
  readonly #ended: Ended[] = [];
  #calls = 0;
  #failures = 0;
  #claimed = now();
  #asked = 0; // jobs by the last claim
  #drains = false;

  /** The gateway at home is the one that it joined at: only that one takes its claims and steps. */
  constructor(readonly id: string, readonly home: number, readonly ttl: number, readonly worker: Worker) {}

  call<T = News>(path: string, body: unknown, options: CallOptions = {}): Promise<T> {
    return this.worker.gateways.call<T>("POST", `/workers/${this.id}/${path}`, { body, ...options });
  }

  tellBeats(message: Omit<ToBeats, "worker">): void { this.worker.beats?.postMessage({ worker: this.id, ...message }); }

  /** Takes what the thread of the beats tells. */
  heard({ news, flushed = [], lost, problem }: FromBeats): void {
    if (problem) this.worker.report(problem);
    if (lost) void this.quit(true);
    if (news) this.#hear(news, 0);
    for (const receipt of flushed) this.#running.get(receipt)?.flushed();
  }

  /** Takes what a gateway answered to a call that was sent then. */
  #hear({ jobs: claimed, cancel }: News, sent: number): void {
    if (this.state === "gone") return;
    const late = sent > 0 && now() - sent > this.ttl * 0.625; // this process stood still: others may have the jobs
    const jobs = late ? [] : (claimed ?? []).map((one) => new Job(one, this));
    for (const job of jobs) this.#running.set(job.receipt, job);
    if (jobs.length > 0) this.tellBeats({ run: jobs.map((job) => job.receipt), since: sent });
    for (const job of jobs) void (this.state === "in" ? this.worker.perform(job) : this.end(job, `"return":true`));
    for (const { receipt, reason } of cancel ?? []) {
      this.#running.get(receipt)?.stop(reason);
      if (reason === "lost") this.forget([receipt]);
    }
  }

  /** Takes how a job ended; undefined is not to be sent. What ends at about the same time shares a call. */
  async end(job: Job, outcome: string | undefined): Promise<void> {
    if (outcome && job.spoke) await job.flush();
    if (outcome && job.over !== "lost" && this.state !== "gone") this.#ended.push({ job, outcome });
    else this.forget([job.receipt]);
    setImmediate(() => this.trade());
  }

  /** Calls the gateway if there is something to say or ask. */
  trade(): void {
    const asks = this.state === "in" && (this.#calls === 0 || this.worker.room > this.#asked);
    if (this.#calls < 2 && this.state !== "gone" && (asks || this.#ended.length > 0)) void this.#trade();
  }

  async #trade(): Promise<void> {
    this.#calls++;
    const batch: Ended[] = [];
    for (let length = 0; this.#ended.length > 0 && length < batchLength; length += batch.at(-1)!.outcome.length) batch.push(this.#ended.shift()!);
    try {
      await this.#finishAndClaim(batch);
      this.#failures = 0;
    } catch (err) {
      if (isRefused(err)) for (const ended of batch) this.#refuse(ended, (err as Error).message);
      else this.#ended.unshift(...batch);
      await this.#failed(err);
    }
    this.#calls--;
    setImmediate(() => this.trade()); // so that it says how the shortest of the new jobs ended
  }

  async #finishAndClaim(batch: Ended[]): Promise<void> {
    const sent = now();
    const [finishes, claims] = [batch.length > 0, this.state === "in"];
    if (claims) [this.#claimed, this.#asked] = [sent, this.worker.room];
    const results = `"results":[${batch.map(({ job, outcome }) => `{"receipt":"${job.receipt}",${outcome}}`).join()}]`;
    const claim = `{"max":${this.worker.room},"wait":"25s","idle":${this.#running.size === batch.length}}`;
    const body = !finishes ? claim : claims ? `{${results},"claim":${claim}}` : `{${results}}`;
    const options = claims ? { at: this.home, timeout: Math.min(25_000, this.ttl / 2) + 10_000 } : {};
    const news = await this.call(finishes ? "finish" : "claim", body, options);
    const invalid = (i: number) => news.results?.[i]?.status === "invalid";
    this.forget(batch.filter((_, i) => !invalid(i)).map(({ job }) => job.receipt));
    batch.forEach((ended, i) => invalid(i) && this.#refuse(ended, news.results![i]!.problem ?? ""));
    this.#hear(news, sent);
    // A gateway that does not have the worker may say so too in answer to a finish, but then refuses a claim.
    this.#drains = news.drain ?? false;
    if (news.drain && !finishes) void this.worker.drain();
  }

  /** Has a job fail whose outcome no gateway takes. */
  #refuse({ job, refused }: Ended, why: string): void {
    this.worker.report(`job ${job.id}: its outcome was refused: ${why}`);
    if (refused) this.forget([job.receipt]);
    else this.#ended.push({ job, outcome: failed("RangeError", `the outcome was refused: ${why}`), refused: true });
  }

  /** Has the next beats not list jobs that are over. */
  forget(receipts: string[]): void {
    for (const receipt of receipts) this.#running.delete(receipt);
    if (receipts.length > 0) this.tellBeats({ end: receipts });
    if (this.state === "moved" && this.#running.size === 0) void this.quit();
  }

  /** Sees to a call that failed, and waits until it may be repeated. */
  async #failed(err: unknown): Promise<void> {
    if (this.state === "gone") return;
    if (isGone(err) && this.#drains) void this.worker.drain();
    if (isGone(err)) return this.quit(true);
    if (this.#failures++ === 0) this.worker.report(`a call failed: ${(err as Error).message}`);
    // Another gateway was chosen since this one did not answer: what is new is claimed there.
    if (this.state === "in" && (isMoved(err) || this.worker.gateways.at !== this.home)) this.move();
    else await pause(backoff(this.#failures));
  }

  /** Claims no more; what runs goes on. */
  move(): void {
    if (this.state !== "in") return;
    this.state = "moved";
    this.tellBeats({ moved: this.#claimed });
    this.worker.left(this);
    this.forget([]);
  }

  /** Ends the membership. What still runs counts no more; unless it is lost already it is handed back. */
  async quit(lost = false): Promise<void> {
    if (this.state === "gone") return;
    this.state = "gone";
    this.tellBeats({ leave: true });
    this.worker.left(this);
    for (const job of this.#running.values()) job.stop("lost");
    if (!lost) await this.worker.gateways.call("DELETE", `/workers/${this.id}`, { timeout: 5_000 }).catch(() => {});
    this.#leave();
  }
}
