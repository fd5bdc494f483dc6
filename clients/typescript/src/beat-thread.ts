// The thread that sends the beats, so that a main thread with much to do does not look dead.
// A worker needs them while it runs something: at other times its claims show that it lives.
import { parentPort, workerData } from "node:worker_threads";
import { backoff } from "./duration.js";
import { isGone } from "./errors.js";
import { Gateways, type GatewayOptions } from "./gateway.js";
import type { FromBeats, News, ToBeats } from "./protocol.js";

const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();
const tell = (message: FromBeats) => parentPort!.postMessage(message);

/** The beats of one worker id. */
class Member {
  readonly running = new Set<string>();
  good = 0; // when it lived for certain
  moved: number | undefined;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined; // also while a beat is on its way

  constructor(readonly worker: string, readonly home: number, readonly every: number, readonly ttl: number) {}

  plan(wait: number): void {
    if (this.running.size > 0 && members.has(this.worker)) this.#timer ??= setTimeout(() => void this.#beat(), Math.max(0, wait));
  }

  async #beat(): Promise<void> {
    if (this.running.size > 0) await this.#call();
    this.#timer = undefined;
    // What runs stops after three quarters of the time to live: another worker may begin it a little later.
    const fence = this.good + this.ttl * 0.75 - Date.now();
    if (this.#failures > 0 && fence <= 0) this.#leave("no beat succeeded for too long");
    this.plan(this.#failures > 0 ? Math.min(backoff(this.#failures), fence) : this.every);
  }

  async #call(): Promise<void> {
    const began = Date.now();
    const body = { running: Array.from(this.running, (receipt) => ({ receipt })), ...(this.moved && { moved_for: `${began - this.moved + 1}ms` }) };
    const at = this.#failures === 0 && !this.moved ? { at: this.home } : {};
    try {
      const news = await gateways.call<News>("POST", `/workers/${this.worker}/beat`, { body, timeout: this.ttl / 4, ...at });
      [this.good, this.#failures] = [began, 0];
      if (news.cancel?.length) tell({ worker: this.worker, news });
    } catch (err) {
      if (isGone(err)) return this.#leave("the worker was buried");
      if (this.#failures++ === 0) tell({ worker: this.worker, problem: `a beat failed: ${(err as Error).message}` });
    }
  }

  #leave(why: string): void {
    if (members.delete(this.worker)) tell({ worker: this.worker, left: true, problem: `${why}: what it ran is stopped` });
  }
}

parentPort!.on("message", ({ worker, join, run = [], since = 0, end = [], moved, leave }: ToBeats) => {
  if (join) members.set(worker, new Member(worker, join.home, join.every, join.ttl));
  const member = members.get(worker);
  if (!member || leave) return members.delete(worker);
  for (const receipt of run) member.running.add(receipt);
  for (const receipt of end) member.running.delete(receipt);
  // A claim passes on that the worker lives if nothing did so for a quarter of the time to live.
  member.good = Math.max(member.good, since - member.every);
  member.moved ??= moved;
  member.plan(member.good + 2 * member.every - Date.now());
});
