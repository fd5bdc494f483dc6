import { backoff, pause } from "./duration.js";
import { isGone, isMoved, isRefused } from "./errors.js";
import type { CallOptions } from "./gateway.js";
import type { ClaimedJob, News } from "./protocol.js";
import { failed, Run } from "./run.js";
import type { Worker } from "./worker.js";

type Ended = { run: Run; outcome: string; refused?: boolean };

const batchSize = 500; // results in one call
const batchLength = 1 << 23; // characters of them: a gateway reads 32 MiB

/**
 * A membership in the roster: one worker id. A worker gets a new one when its gateway was restarted;
 * the old one goes on until what it runs has ended.
 *
 * One call is always on its way: it says how runs ended, if any did, and waits for the next jobs. When
 * more runs end a second call says so, upon which the gateway answers the first.
 */
export class Member {
  /** in: it claims. moved: it only ends what runs. gone: nothing of it counts any more. */
  state: "in" | "moved" | "gone" = "in";
  #leave = () => {};
  /** Resolves when it is gone. */
  readonly gone = new Promise<void>((resolve) => (this.#leave = resolve));
  readonly #running = new Map<string, Run>();
  readonly #ended: Ended[] = [];
  #calls = 0;
  #roomier = false; // than the call on its way says
  #atMost = batchSize;
  #failures = 0;
  #drains = false;
  #claimed = Date.now();
  #speech: NodeJS.Timeout | undefined;
  #spoken = Promise.resolve();

  /** The gateway at home is the one that it joined at: only that one takes its claims and steps. */
  constructor(readonly id: string, readonly home: number, readonly ttl: number, readonly worker: Worker) {}

  call<T>(path: string, options: CallOptions): Promise<T> {
    return this.worker.gateways.call<T>("POST", `/workers/${this.id}/${path}`, options);
  }

  /** Takes what a gateway told. */
  hear({ jobs, cancel }: News, since = 0): void {
    if (jobs?.length) this.#take(jobs, since);
    for (const { receipt, reason } of cancel ?? []) {
      const run = this.#running.get(receipt);
      run?.stop(reason);
      if (run && reason === "lost") this.forget([run]);
    }
  }

  #take(jobs: ClaimedJob[], since: number): void {
    if (this.state === "gone") return;
    const runs = jobs.map((job) => new Run(job, this));
    for (const run of runs) this.#running.set(run.receipt, run);
    this.worker.tellBeats({ worker: this.id, run: { receipts: jobs.map((job) => job.receipt), since } });
    for (const run of runs) {
      if (this.state === "in") void this.worker.perform(run);
      else void this.end(run, `"return":true`);
    }
  }

  /** Takes how a run ended. What ends at about the same time shares a call. */
  async end(run: Run, outcome: string | undefined): Promise<void> {
    for (let tries = 0; outcome !== undefined && run.unsaid && tries < 6; tries++) {
      if (tries > 0) await pause(backoff(tries));
      await this.speak();
    }
    if (outcome === undefined || run.over === "lost" || this.state === "gone") this.forget([run]);
    else this.#ended.push({ run, outcome });
    setImmediate(() => this.trade());
  }

  /** Asks for jobs anew since there is more room. */
  makeRoom(): void {
    this.#roomier = true;
    this.trade();
  }

  /** Calls the gateway if there is something to send or no call on its way. */
  trade(): void {
    const asks = this.state === "in" && (this.#calls === 0 || this.#roomier);
    if (this.#calls < 2 && this.state !== "gone" && (asks || this.#ended.length > 0)) void this.#trade();
  }

  async #trade(): Promise<void> {
    this.#calls++;
    const batch = this.#nextBatch();
    try {
      if (this.state === "in") await this.#finishAndClaim(batch);
      else this.#settle(batch, await this.call<News>("finish", { body: `{"results":[${listed(batch)}]}` }));
      this.#failures = 0;
      this.#atMost = batchSize;
    } catch (err) {
      const refused = isRefused(err) && batch.length > 0;
      if (refused && batch.length === 1) this.#refuse(batch[0]!, (err as Error).message);
      else this.#ended.unshift(...batch);
      if (refused) this.#atMost = 1;
      else await this.#failed(err);
    }
    this.#calls--;
    this.trade();
  }

  async #finishAndClaim(batch: Ended[]): Promise<void> {
    this.#roomier = false;
    const since = (this.#claimed = Date.now());
    const claim = `"max":${this.worker.room},"wait":"25s"`;
    const options = { at: this.home, timeout: Math.min(25_000, this.ttl / 2) + 10_000 };
    const body = batch.length > 0 ? `{"results":[${listed(batch)}],"claim":{${claim}}}` : `{${claim}}`;
    const news = await this.call<News>(batch.length > 0 ? "finish" : "claim", { body, ...options });
    this.#settle(batch, news, since);
    // A gateway that does not have the worker may answer it to a finish, but refuses a claim.
    this.#drains = news.drain ?? false;
    if (news.drain && batch.length === 0) void this.worker.drain();
  }

  #nextBatch(): Ended[] {
    let length = 0;
    const tooMuch = this.#ended.findIndex(({ outcome }) => (length += outcome.length) > batchLength);
    return this.#ended.splice(0, tooMuch > 0 ? Math.min(tooMuch, this.#atMost) : this.#atMost);
  }

  #settle(batch: Ended[], news: News, since = 0): void {
    batch.forEach((ended, i) => {
      const { status, problem = "no reason was given" } = news.results?.[i] ?? {};
      if (status === "invalid") this.#refuse(ended, problem);
      else ended.refused = false;
    });
    this.forget(batch.filter((ended) => !ended.refused).map(({ run }) => run));
    this.hear(news, since);
  }

  /** Has a run fail whose outcome no gateway takes. */
  #refuse(ended: Ended, why: string): void {
    this.worker.report(`job ${ended.run.claimed.id}: its outcome was refused: ${why}`);
    if (ended.refused) return this.forget([ended.run]);
    this.#ended.push({ run: ended.run, outcome: failed("RangeError", `the outcome was refused: ${why}`), refused: true });
  }

  /** Has the next beats not list runs that are over. */
  forget(runs: Run[]): void {
    for (const run of runs) this.#running.delete(run.receipt);
    if (runs.length > 0) this.worker.tellBeats({ worker: this.id, end: runs.map((run) => run.receipt) });
    if (this.state === "moved" && this.#running.size === 0) void this.quit();
  }

  /** Sends what the runs say, after a second that others may share. */
  speakSoon(): void {
    this.#speech ??= setTimeout(() => void this.speak(), 1_000);
  }

  /** Sends what the runs have said, by a beat of its own. */
  speak(): Promise<void> {
    clearTimeout(this.#speech);
    this.#speech = undefined;
    return (this.#spoken = this.#spoken.then(() => this.#beat()));
  }

  async #beat(moved?: string): Promise<void> {
    const runs = [...this.#running.values()];
    const said = runs.filter((run) => run.unsaid);
    if (this.state === "gone" || (said.length === 0 && !moved)) return;
    const running = runs.map(({ receipt, unsaid, progress, log }) => (unsaid ? { receipt, progress, log: [...log] } : { receipt }));
    const logs = said.map((run) => run.log.length);
    for (const run of said) run.unsaid = false;
    try {
      this.hear(await this.call<News>("beat", { body: { running, moved_for: moved }, timeout: 5_000 }));
      said.forEach((run, i) => run.log.splice(0, logs[i]));
    } catch (err) {
      if (isRefused(err)) return this.worker.report(`what jobs said was refused: ${(err as Error).message}`);
      for (const run of said) run.unsaid = true;
      this.speakSoon();
    }
  }

  /** Sees to a call that failed, and waits until it may be repeated. */
  async #failed(err: unknown): Promise<void> {
    if (this.state === "gone") return;
    if (isGone(err) && this.#drains) void this.worker.drain();
    if (isGone(err)) return this.lose();
    if (this.#failures++ === 0) this.worker.report(`a call failed: ${(err as Error).message}`);
    // Another gateway was chosen since this one did not answer: what is new is claimed there.
    if (this.state === "in" && (isMoved(err) || this.worker.gateways.at !== this.home)) this.move();
    else await pause(backoff(this.#failures));
  }

  /** Claims no more; what runs goes on. */
  move(): void {
    if (this.state !== "in") return;
    this.state = "moved";
    this.worker.tellBeats({ worker: this.id, moved: this.#claimed });
    void this.#beat(`${Date.now() - this.#claimed + 1}ms`);
    this.worker.left(this);
    this.forget([]);
  }

  /** Stops what runs: it does not count any more. */
  lose(): void {
    this.#close();
    for (const run of this.#running.values()) run.stop("lost");
    this.#leave();
  }

  /** Leaves the roster: what still runs is handed back. */
  async quit(): Promise<void> {
    if (this.state === "gone") return this.gone;
    const at = this.state === "in" ? { at: this.home } : {};
    this.#close();
    await this.worker.gateways.call("DELETE", `/workers/${this.id}`, { timeout: 5_000, ...at }).catch(() => {});
    this.#leave();
  }

  #close(): void {
    this.state = "gone";
    clearTimeout(this.#speech);
    this.worker.tellBeats({ worker: this.id, leave: true });
    this.worker.left(this);
  }
}

function listed(batch: Ended[]): string {
  return batch.map(({ run, outcome }) => `{"receipt":${JSON.stringify(run.receipt)},${outcome}}`).join();
}
