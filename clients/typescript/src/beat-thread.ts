// The thread that sends the beats, so that a main thread with much to do does not look dead.
// A worker needs them while it runs something: at other times its claims show that it lives.
import { parentPort, workerData } from "node:worker_threads";
import { now } from "./duration.js";
import { isGone, isRefused } from "./errors.js";
import { Gateways, type GatewayOptions } from "./gateway.js";
import type { FromBeats, News, Said, ToBeats } from "./protocol.js";

const maxLines = 1_000; // of a run that wait for a beat
const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();

/** The beats of one worker id. */
class Member {
  readonly #running = new Map<string, Said>();
  readonly #flushing: string[] = [];
  #moved: number | undefined;
  #good = 0; // when it lived for certain
  #sent = 0; // the last claim or beat
  #spoke = false;
  #failures = 0;
  #beating = false;

  constructor(readonly worker: string, readonly home: number, readonly ttl: number) {}

  hear({ run = [], since = 0, say, flush, end = [], moved }: ToBeats): void {
    for (const receipt of run) this.#running.set(receipt, { log: [] });
    for (const receipt of end) this.#running.delete(receipt);
    // A claim says that the worker lives if nothing did for a quarter of its time to live.
    [this.#sent, this.#good] = [Math.max(this.#sent, since), Math.max(this.#good, since - this.ttl / 4)];
    const said = this.#running.get(say?.receipt ?? "");
    if (say?.progress && said) said.progress = say.progress;
    if (say && said && said.log.length < maxLines) said.log.push(...say.log);
    this.#spoke ||= said !== undefined;
    this.#moved ??= moved;
    if (flush) this.#flushing.push(flush);
    if (flush || moved || (run.length > 0 && this.isDue())) void this.beat();
  }

  isDue(): boolean { return this.#spoke || this.#failures > 0 || now() >= this.#sent + this.ttl / 4; }

  async beat(): Promise<void> {
    if (this.#beating || this.#running.size === 0) return;
    this.#beating = true;
    await this.#call();
    this.#beating = false;
    if (this.#failures > 0 && this.#left() <= 0) this.#lose("no beat succeeded for too long");
    if (this.#failures === 0 && this.#flushing.length > 0) await this.beat();
  }

  /** For how long what runs may go on without a beat. Another worker may begin it a little later. */
  #left(): number { return this.#good + this.ttl * 0.75 - now(); }

  async #call(): Promise<void> {
    const sent = (this.#sent = now());
    this.#spoke = false;
    const running = Array.from(this.#running, ([receipt, said]) => ({ receipt, progress: said.progress, log: [...said.log] }));
    const flushed = this.#flushing.splice(0);
    const moved_for = this.#moved && `${sent - this.#moved + 1}ms`;
    const at = this.#failures === 0 && !this.#moved ? { at: this.home } : {};
    const timeout = Math.max(500, Math.min(this.ttl / 4, this.#left()));
    try {
      const news = await gateways.call<News>("POST", `/workers/${this.worker}/beat`, { body: { running, moved_for }, timeout, ...at });
      [this.#good, this.#failures] = [sent, 0];
      for (const { receipt, log } of running) this.#running.get(receipt)?.log.splice(0, log.length);
      this.#tell({ news, flushed });
    } catch (err) {
      if (this.#failures > 2) this.#tell({ flushed }); // the end of a job matters more than its last line
      else this.#flushing.unshift(...flushed);
      if (isRefused(err)) for (const said of this.#running.values()) said.log.length = 0; // it may be too much
      if (isGone(err)) this.#lose("the worker was buried");
      else if (this.#failures++ === 0) this.#tell({ problem: `a beat failed: ${(err as Error).message}` });
    }
  }

  #lose(why: string): void { if (members.delete(this.worker)) this.#tell({ lost: true, problem: `${why}: what it ran is stopped` }); }
  #tell(message: Omit<FromBeats, "worker">): void { parentPort!.postMessage({ worker: this.worker, ...message }); }
}

parentPort!.on("message", (message: ToBeats) => {
  const { worker, join, leave } = message;
  if (join) members.set(worker, new Member(worker, join.home, join.ttl));
  if (leave) members.delete(worker);
  else members.get(worker)?.hear(message);
});

setInterval(() => members.forEach((member) => member.isDue() && void member.beat()), 500);
