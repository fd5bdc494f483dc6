import type { Beats } from "./beats.js";
import { backoff, pause } from "./duration.js";
import { GatewayError } from "./errors.js";
import { type CallOptions, type Gateways, isGone, isMoved, isRefused } from "./gateway.js";
import type { ClaimedJob, FinishAnswer, News, Said } from "./protocol.js";
import { problem, Run } from "./run.js";

/** What a membership needs of its worker. */
export interface Owner {
  readonly gateways: Gateways;
  readonly beats: Beats;
  readonly closing: AbortSignal;
  /** How many slots are free; 0 when no more is to be claimed. */
  free(freed?: number): number;
  take(run: Run): void;
  /** Tells that a run needs its slot no more. */
  release(run: Run): void;
  drain(): void;
  /** Tells that a membership claims no more. */
  left(member: Member): void;
  report(problem: string): void;
}

interface Ended {
  run: Run;
  outcome: string;
  refused: number;
}

const batchSize = 500;
const batchBytes = 1 << 20;

/**
 * A membership in the roster: the claims, finishes and beats of one worker id. A worker has a new
 * one when its gateway was restarted; the old one goes on until what it runs has ended.
 */
export class Member {
  /** in: it claims. moved: it only finishes what runs. gone: nothing of it counts any more. */
  state: "in" | "moved" | "gone" = "in";
  readonly #running = new Map<string, Run>();
  readonly #ended: Ended[] = [];
  #finishing = false;
  #claiming = false; // by a finish that is on its way
  #poll: { max: number } | undefined;
  #idle: NodeJS.Timeout | undefined;
  #failures = 0;

  constructor(
    readonly worker: string,
    /** Which gateway it joined at: only that one takes its claims and steps. */
    readonly home: number,
    readonly owner: Owner,
  ) {}

  call<T>(path: string, options: CallOptions): Promise<T> {
    return this.owner.gateways.call<T>("POST", `/workers/${this.worker}/${path}`, options);
  }

  say(run: Run, progress: Said["progress"], line?: string): void {
    this.owner.beats.tell({ do: "say", worker: this.worker, receipt: run.receipt, ...(progress && { progress }), ...(line !== undefined && { line }) });
  }

  /** Takes what a gateway answered to a claim, a finish or a beat. */
  hear(news: News): void {
    if (news.jobs?.length && this.state !== "gone") this.#take(news.jobs);
    for (const { receipt, reason } of news.cancel ?? []) {
      const run = this.#running.get(receipt);
      run?.stop(reason);
      if (run && reason === "lost") this.unlist([run]);
    }
    if (news.drain) this.owner.drain();
  }

  #take(jobs: ClaimedJob[]): void {
    const runs = jobs.map((job) => new Run(job, this));
    for (const run of runs) this.#running.set(run.receipt, run);
    this.owner.beats.tell({ do: "run", worker: this.worker, receipts: jobs.map((job) => job.receipt) });
    for (const run of runs) {
      if (this.owner.closing.aborted) this.finish(run, `"return":true`);
      else this.owner.take(run);
    }
  }

  /** Asks for jobs, and for cancellations only when no slot is free, unless a claim is on its way that does so. */
  poll(): void {
    if (this.state !== "in" || this.#claiming || this.owner.closing.aborted) return;
    const max = this.owner.free();
    if (this.#poll !== undefined && (this.#poll.max > 0 || max === 0)) return;
    clearTimeout(this.#idle);
    // Under load a finish comes soon, and brings the next claim with it.
    if (max === 0) this.#idle = setTimeout(() => this.#poll || this.#claiming || this.state !== "in" || void this.#claim(this.owner.free(), "25s"), 100);
    else void this.#claim(max, "25s");
  }

  async #claim(max: number, wait: string): Promise<void> {
    const mine = (this.#poll = { max });
    const began = Date.now();
    try {
      const news = await this.call<News>("claim", { body: { max, wait }, timeout: 40_000, at: this.home });
      this.#failures = 0;
      const quick = max > 0 && !news.jobs?.length && !news.cancel?.length && Date.now() - began < 1_000;
      if (quick && this.#poll === mine) await pause(250, this.owner.closing);
      if (this.#poll === mine) this.#poll = undefined;
      this.hear(news);
    } catch (err) {
      await this.#failed("claim", err, true);
    }
    if (this.#poll === mine) this.#poll = undefined;
    this.poll();
  }

  /** Ends the poll that is on its way, so that it brings no more jobs. */
  async endPoll(): Promise<void> {
    clearTimeout(this.#idle);
    if (this.#poll === undefined || this.state !== "in") return;
    await this.call<News>("claim", { body: { max: 0, wait: "0s" }, timeout: 5_000, at: this.home }).then((news) => this.hear(news), () => {});
  }

  /** Sends how a run ended. Those that end at about the same time share a call, which claims the next jobs. */
  finish(run: Run, outcome: string): void {
    this.#ended.push({ run, outcome, refused: 0 });
    if (this.#finishing) return;
    this.#finishing = true;
    setImmediate(() => void this.#finishAll());
  }

  async #finishAll(): Promise<void> {
    let atMost = batchSize;
    while (this.#ended.length > 0 && this.state !== "gone") {
      const batch = this.#batch(atMost);
      const max = this.state === "in" && !this.#poll?.max ? this.owner.free(batch.length) : 0;
      this.#claiming = max > 0;
      const results = batch.map(({ run, outcome }) => `{"receipt":${JSON.stringify(run.receipt)},${outcome}}`).join();
      const body = `{"results":[${results}]${max > 0 ? `,"claim":{"max":${max},"wait":"0s"}` : ""}}`;
      try {
        const answer = await this.call<FinishAnswer>("finish", { body, ...(this.state === "in" && { at: this.home }) });
        this.#claiming = false;
        this.#failures = 0;
        this.#ended.splice(0, batch.length);
        this.#settle(batch, answer.results);
        this.hear(answer);
        atMost = batchSize;
      } catch (err) {
        this.#claiming = false;
        if (!isRefused(err)) await this.#failed("finish", err, max > 0);
        else if (batch.length > 1) atMost = 1;
        else this.#settle(this.#ended.splice(0, 1), [{ status: "invalid", problem: (err as Error).message }]);
      }
      this.poll();
    }
    this.#finishing = false;
    this.#leaveIfDone();
  }

  #batch(atMost: number): Ended[] {
    let n = 0;
    for (let bytes = 0; n < Math.min(this.#ended.length, atMost) && (n === 0 || bytes < batchBytes); n++) bytes += this.#ended[n]!.outcome.length;
    return this.#ended.slice(0, n);
  }

  #settle(batch: Ended[], answers: FinishAnswer["results"]): void {
    const done: Run[] = [];
    batch.forEach(({ run, refused }, i) => {
      const answer = answers[i];
      if (answer?.status !== "invalid" || refused >= 2) return done.push(run);
      this.owner.report(`job ${run.claimed.id}: its outcome was refused: ${answer.problem}`);
      const outcome = refused === 0 ? problem("InvalidOutcome", answer.problem ?? "the gateway refused it") : `"return":true`;
      this.#ended.push({ run, outcome, refused: refused + 1 });
    });
    this.unlist(done);
    for (const run of done) this.owner.release(run);
  }

  /** Forgets runs that are over, so that the beats do not list them. */
  unlist(runs: Run[]): void {
    for (const run of runs) this.#running.delete(run.receipt);
    this.owner.beats.tell({ do: "end", worker: this.worker, receipts: runs.map((run) => run.receipt) });
    this.#leaveIfDone();
  }

  /** Sees to a call that failed, and waits until it may be repeated. */
  async #failed(what: string, err: unknown, claims: boolean): Promise<void> {
    if (this.state === "gone") return;
    if (isGone(err)) return this.lose();
    if (this.#failures++ === 0) this.owner.report(`a ${what} failed: ${(err as Error).message}`);
    const unreachable = err instanceof GatewayError && err.passes && err.status !== 429 && err.status !== 503;
    if (isMoved(err) || (unreachable && this.owner.gateways.several)) this.move();
    if (!(isMoved(err) && claims)) await pause(backoff(this.#failures));
  }

  /** Claims no more; what runs goes on. */
  move(): void {
    if (this.state !== "in") return;
    this.state = "moved";
    this.owner.left(this);
    this.#leaveIfDone();
  }

  /** Stops what runs: it does not count any more. */
  lose(): void {
    if (this.state === "gone") return;
    const claimed = this.state === "in";
    this.#close();
    for (const run of this.#running.values()) run.stop("lost");
    for (const { run } of this.#ended.splice(0)) this.owner.release(run);
    this.#running.clear();
    if (claimed) this.owner.left(this);
  }

  /** Leaves the roster: what still runs is handed back. */
  async quit(): Promise<void> {
    if (this.state === "gone") return;
    const at = this.state === "in" ? { at: this.home } : {};
    this.#close();
    await this.owner.gateways.call("DELETE", `/workers/${this.worker}`, { timeout: 5_000, ...at }).catch(() => {});
  }

  #leaveIfDone(): void {
    if (this.state === "moved" && this.#running.size === 0 && !this.#finishing) void this.quit();
  }

  #close(): void {
    this.state = "gone";
    clearTimeout(this.#idle);
    this.owner.beats.tell({ do: "leave", worker: this.worker });
  }
}
