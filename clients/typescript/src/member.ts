import { backoff, pause } from "./duration.js";
import { isGone, isMoved, isRefused } from "./errors.js";
import type { CallOptions } from "./gateway.js";
import type { ClaimedJob, News, Said } from "./protocol.js";
import { problem, Run } from "./run.js";
import type { Worker } from "./worker.js";

type Ended = { run: Run; outcome: string; refused?: true };

const batchSize = 500; // results in one finish
const finishesAtOnce = 4;

/**
 * A membership in the roster: the claims, finishes and beats of one worker id. A worker gets a new
 * one when its gateway was restarted; the old one goes on until what it runs has ended.
 */
export class Member {
  /** in: it claims. moved: it only finishes what runs. gone: nothing of it counts any more. */
  state: "in" | "moved" | "gone" = "in";
  readonly #running = new Map<string, Run>();
  readonly #ended: Ended[] = [];
  #finishing = 0;
  #claiming = false; // by a finish that is on its way
  #poll: { max: number } | undefined;
  #idle: NodeJS.Timeout | undefined;
  #speech: NodeJS.Timeout | undefined;
  #spoken = Promise.resolve();
  #failures = 0;

  /** The gateway at home is the one that it joined at: only that one takes its claims and steps. */
  constructor(readonly id: string, readonly home: number, readonly worker: Worker) {}

  call<T>(path: string, options: CallOptions): Promise<T> {
    return this.worker.gateways.call<T>("POST", `/workers/${this.id}/${path}`, options);
  }

  /** Takes what a gateway answered to a claim, a finish or a beat. To drain counts only from a poll: a gateway that does not have the worker answers it to any beat and finish. */
  hear({ jobs, cancel, drain }: News, polled = false): void {
    if (jobs?.length && this.state !== "gone") this.#take(jobs);
    for (const { receipt, reason } of cancel ?? []) {
      const run = this.#running.get(receipt);
      run?.stop(reason);
      if (run && reason === "lost") this.unlist([run]);
    }
    if (drain && polled && this.state === "in") void this.worker.drain();
  }

  #take(jobs: ClaimedJob[]): void {
    const runs = jobs.map((job) => new Run(job, this));
    for (const run of runs) this.#running.set(run.receipt, run);
    this.worker.tellBeats({ worker: this.id, run: jobs.map((job) => job.receipt) });
    for (const run of runs) {
      if (this.worker.closing.signal.aborted) this.finish(run, `"return":true`);
      else void this.worker.perform(run);
    }
  }

  /** Asks for jobs, and for cancellations only when no slot is free, unless a claim is on its way that does so. */
  poll(): void {
    if (this.state !== "in" || this.#claiming || this.worker.closing.signal.aborted) return;
    const max = this.worker.free();
    if (this.#poll !== undefined && (this.#poll.max > 0 || max === 0)) return;
    clearTimeout(this.#idle);
    if (max > 0) void this.#claim(max);
    // Under load a finish comes soon, and brings the next claim with it.
    else this.#idle = setTimeout(() => this.#poll || this.#claiming || this.state !== "in" || void this.#claim(this.worker.free()), 100);
  }

  async #claim(max: number): Promise<void> {
    const mine = (this.#poll = { max });
    const began = Date.now();
    try {
      const news = await this.call<News>("claim", { body: { max, wait: "25s" }, timeout: 40_000, at: this.home });
      this.#failures = 0;
      const hasty = !news.jobs?.length && !news.cancel?.length && Date.now() - began < 1_000;
      if (hasty && max > 0 && this.#poll === mine) await pause(250, this.worker.closing.signal);
      if (this.#poll === mine) this.#poll = undefined;
      this.hear(news, true);
    } catch (err) {
      await this.#failed("claim", err);
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

  /** Sends how a run ended. Those that end at about the same time share a call, which claims the next jobs unless a poll does. */
  finish(run: Run, outcome: string): void {
    this.#ended.push({ run, outcome });
    setImmediate(() => void this.#finishAll());
  }

  async #finishAll(): Promise<void> {
    if (this.#finishing >= finishesAtOnce) return;
    this.#finishing++;
    for (let atMost = batchSize; this.#ended.length > 0 && this.state !== "gone"; this.poll()) {
      const batch = this.#ended.splice(0, atMost);
      const max = this.state === "in" && !this.#claiming && !this.#poll?.max ? this.worker.free(batch.length) : 0;
      const results = batch.map(({ run, outcome }) => `{"receipt":${JSON.stringify(run.receipt)},${outcome}}`).join();
      const body = `{"results":[${results}]${max > 0 ? `,"claim":{"max":${max},"wait":"0s"}` : ""}}`;
      if (max > 0) this.#claiming = true;
      try {
        const answer = await this.call<News>("finish", { body, ...(this.state === "in" && { at: this.home }) });
        if (max > 0) this.#claiming = false;
        this.#failures = 0;
        this.#settle(batch, answer.results);
        this.hear(answer);
      } catch (err) {
        if (max > 0) this.#claiming = false;
        if (isRefused(err) && batch.length === 1) this.#settle(batch, [{ status: "invalid", problem: (err as Error).message }]);
        else this.#ended.unshift(...batch);
        if (isRefused(err)) atMost = 1;
        else await this.#failed("finish", err);
      }
    }
    this.#finishing--;
    if (this.state === "gone") for (const { run } of this.#ended.splice(0)) this.worker.release(run);
  }

  #settle(batch: Ended[], answers: News["results"] = []): void {
    const done: Run[] = [];
    batch.forEach(({ run, refused }, i) => {
      const answer = answers[i];
      if (answer?.status !== "invalid" || refused) return done.push(run);
      this.worker.report(`job ${run.claimed.id}: its outcome was refused: ${answer.problem}`);
      this.#ended.push({ run, outcome: problem("InvalidOutcome", answer.problem ?? "refused"), refused: true });
    });
    this.unlist(done);
    for (const run of done) this.worker.release(run);
  }

  /** Has the next beats not list runs that are over. */
  unlist(runs: Run[]): void {
    for (const run of runs) this.#running.delete(run.receipt);
    this.worker.tellBeats({ worker: this.id, end: runs.map((run) => run.receipt) });
    this.#leaveIfDone();
  }

  speakSoon(): void {
    this.#speech ??= setTimeout(() => void this.speak(), 1_000);
  }

  /** Sends what the runs have said, by a beat of its own. */
  speak(): Promise<void> {
    return (this.#spoken = this.#spoken.then(() => this.#speak()));
  }

  async #speak(): Promise<void> {
    clearTimeout(this.#speech);
    this.#speech = undefined;
    const runs = [...this.#running.values()];
    if (this.state === "gone" || !runs.some((run) => run.said)) return;
    const said = runs.map((run): [Run, Said | undefined] => [run, run.said]);
    for (const run of runs) run.said = undefined;
    try {
      const running = said.map(([run, what]) => ({ receipt: run.receipt, ...what }));
      this.hear(await this.call<News>("beat", { body: { running }, timeout: 5_000 }));
    } catch (err) {
      if (isRefused(err)) return this.worker.report(`what jobs said was refused: ${(err as Error).message}`);
      for (const [run, what] of said) if (what) run.said = { ...what, ...run.said, log: [...(what.log ?? []), ...(run.said?.log ?? [])] };
      this.speakSoon();
    }
  }

  /** Sees to a call that failed, and waits until it may be repeated. */
  async #failed(what: "claim" | "finish", err: unknown): Promise<void> {
    if (this.state === "gone") return;
    if (isGone(err)) return this.lose();
    if (this.#failures++ === 0) this.worker.report(`a ${what} failed: ${(err as Error).message}`);
    const wasIn = this.state === "in";
    // Another gateway was chosen since this one did not answer: what is new is claimed there.
    if (isMoved(err) || (this.worker.gateways.at !== this.home)) this.move();
    if (this.state === "in" || !wasIn) await pause(backoff(this.#failures));
  }

  /** Claims no more; what runs goes on. */
  move(): void {
    if (this.state !== "in") return;
    this.state = "moved";
    this.worker.left(this);
    this.#leaveIfDone();
  }

  /** Stops what runs: it does not count any more. */
  lose(): void {
    if (this.state === "gone") return;
    this.#close();
    for (const run of this.#running.values()) run.stop("lost");
    for (const { run } of this.#ended.splice(0)) this.worker.release(run);
    this.#running.clear();
    this.worker.left(this);
  }

  /** Leaves the roster: what still runs is handed back. */
  async quit(): Promise<void> {
    if (this.state === "gone") return;
    const at = this.state === "in" ? { at: this.home } : {};
    this.#close();
    await this.worker.gateways.call("DELETE", `/workers/${this.id}`, { timeout: 5_000, ...at }).catch(() => {});
  }

  #leaveIfDone(): void {
    if (this.state === "moved" && this.#running.size === 0) void this.quit();
  }

  #close(): void {
    this.state = "gone";
    clearTimeout(this.#idle);
    clearTimeout(this.#speech);
    this.worker.tellBeats({ worker: this.id, leave: true });
  }
}
