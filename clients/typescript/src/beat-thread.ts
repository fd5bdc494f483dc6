// The thread that sends the beats, so that a main thread with much to do does not look dead.
// A worker needs them while it runs something: at other times its claims show that it lives.
import { parentPort, workerData } from "node:worker_threads";
import { isGone, isRefused } from "./errors.js";
import { Gateways, type GatewayOptions } from "./gateway.js";
import type { FromBeats, News, Said, ToBeats } from "./protocol.js";

const maxLines = 1_000; // of a run that wait for a beat
const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();

/** The beats of one worker id. */
class Member {
  readonly running = new Map<string, Said>();
  readonly flushing: string[] = [];
  moved: number | undefined;
  #good = 0; // when it lived for certain
  #sent = 0;
  #spoke = false;
  #failures = 0;
  #beating = false;

  constructor(readonly worker: string, readonly home: number, readonly every: number, readonly ttl: number) {}

  run(receipts: string[], since: number): void {
    for (const receipt of receipts) this.running.set(receipt, { log: [] });
    this.#sent = Math.max(this.#sent, since);
    this.#good = Math.max(this.#good, since - this.every); // a claim says that the worker lives if nothing did for that long
  }

  say({ receipt, progress, log }: NonNullable<ToBeats["say"]>): void {
    const said = this.running.get(receipt);
    if (said && progress) said.progress = progress;
    if (said && said.log.length < maxLines) said.log.push(...log);
    this.#spoke = true;
  }

  isDue(): boolean {
    return this.#spoke || this.#failures > 0 || Date.now() >= this.#sent + this.every;
  }

  async beat(): Promise<void> {
    if (this.#beating || this.running.size === 0) return;
    this.#beating = true;
    await this.#call();
    this.#beating = false;
    // What runs stops after three quarters of the time to live: another worker may begin it a little later.
    if (this.#failures > 0 && Date.now() >= this.#good + this.ttl * 0.75) this.#lose("no beat succeeded for too long");
    if (this.#failures === 0 && this.flushing.length > 0) await this.beat();
  }

  async #call(): Promise<void> {
    [this.#sent, this.#spoke] = [Date.now(), false];
    const sent = this.#sent;
    const running = Array.from(this.running, ([receipt, said]) => ({ receipt, progress: said.progress, log: [...said.log] }));
    const flushed = this.flushing.splice(0);
    const moved_for = this.moved && `${sent - this.moved + 1}ms`;
    const at = this.#failures === 0 && !this.moved ? { at: this.home } : {};
    try {
      const news = await gateways.call<News>("POST", `/workers/${this.worker}/beat`, { body: { running, moved_for }, timeout: this.ttl / 4, ...at });
      [this.#good, this.#failures] = [sent, 0];
      for (const { receipt, log } of running) this.running.get(receipt)?.log.splice(0, log.length);
      this.#tell({ news, flushed });
    } catch (err) {
      this.flushing.unshift(...flushed);
      if (isRefused(err)) for (const said of this.running.values()) said.log.length = 0; // it may be too much
      if (isGone(err)) this.#lose("the worker was buried");
      else if (this.#failures++ === 0) this.#tell({ problem: `a beat failed: ${(err as Error).message}` });
    }
  }

  #lose(why: string): void {
    if (members.delete(this.worker)) this.#tell({ lost: true, problem: `${why}: what it ran is stopped` });
  }

  #tell(message: Omit<FromBeats, "worker">): void {
    parentPort!.postMessage({ worker: this.worker, ...message });
  }
}

parentPort!.on("message", ({ worker, join, run = [], since = 0, say, flush, end = [], moved, leave }: ToBeats) => {
  if (join) members.set(worker, new Member(worker, join.home, join.every, join.ttl));
  const member = members.get(worker);
  if (!member || leave) return members.delete(worker);
  member.run(run, since);
  if (say) member.say(say);
  if (flush) member.flushing.push(flush);
  for (const receipt of end) member.running.delete(receipt);
  member.moved ??= moved;
  if (flush || moved) void member.beat();
});

setInterval(() => members.forEach((member) => member.isDue() && void member.beat()), 500);
