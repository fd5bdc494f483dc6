// The thread that sends the beats, so that a main thread with much to do does not look dead.
import { parentPort, workerData } from "node:worker_threads";
import { backoff } from "./duration.js";
import { Gateways, type GatewayOptions, isGone, isMoved, isRefused } from "./gateway.js";
import type { FromBeats, News, Said, ToBeats } from "./protocol.js";

const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();
const tell = (message: FromBeats) => parentPort!.postMessage(message);

const maxLines = 1_000; // kept of a run between two beats; the oldest of more are left out

class Member {
  readonly running = new Map<string, Said>();
  readonly #waiting = new Map<number, string>(); // tickets of flushes, with their receipts
  #good = Date.now();
  #failures = 0;
  #sending = false;
  #soon = false;
  #moved = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly worker: string,
    readonly every: number,
    readonly ttl: number,
  ) {
    this.#in(every);
  }

  #in(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.beat(), ms);
  }

  say(receipt: string, progress: Said["progress"], line: string | undefined): void {
    const said = this.running.get(receipt);
    if (said === undefined) return;
    if (progress !== undefined) said.progress = progress;
    if (line === undefined) return;
    said.log.push(line);
    if (said.log.length > maxLines) said.log.shift();
    if (said.log.length >= maxLines / 2 && this.#failures === 0) void this.beat();
  }

  flush(receipt: string, ticket: number): void {
    this.#waiting.set(ticket, receipt);
    void this.beat();
  }

  leave(): void {
    clearTimeout(this.#timer);
    members.delete(this.worker);
    for (const ticket of this.#waiting.keys()) tell({ flushed: ticket });
  }

  /** Sends a beat now, or once more after the one that is on its way. */
  async beat(): Promise<void> {
    this.#soon = this.#sending;
    if (this.#sending) return;
    this.#sending = true;
    const began = Date.now();
    const sent = [...this.running].map(([receipt, said]): [string, Said] => [receipt, { ...said }]);
    for (const said of this.running.values()) {
      delete said.progress;
      said.log = [];
    }
    const running = sent.map(([receipt, { progress, log }]) => ({ receipt, ...(progress && { progress }), ...(log.length > 0 && { log }) }));
    try {
      const timeout = Math.min(this.every, this.ttl / 4);
      const news = await gateways.call<News>("POST", `/workers/${this.worker}/beat`, { body: { running }, timeout });
      this.#good = began;
      this.#failures = 0;
      if (news.cancel?.length || news.drain) tell({ worker: this.worker, news });
    } catch (err) {
      if (!members.has(this.worker)) return;
      if (isGone(err) || Date.now() - this.#good > this.ttl * 0.75) {
        tell({ worker: this.worker, left: isGone(err) ? "gone" : "fenced" });
        return this.leave();
      }
      if (isMoved(err) && !this.#moved) tell({ worker: this.worker, left: "moved" });
      this.#moved ||= isMoved(err);
      if (this.#failures++ === 0) tell({ worker: this.worker, problem: `a beat failed: ${(err as Error).message}` });
      if (!isRefused(err)) this.#restore(sent); // what a gateway refuses as such would cost the worker its life
    } finally {
      this.#sending = false;
    }
    if (!members.has(this.worker)) return;
    for (const [ticket, receipt] of this.#waiting) {
      const said = this.running.get(receipt);
      if (said?.progress !== undefined || said?.log.length) continue;
      this.#waiting.delete(ticket);
      tell({ flushed: ticket });
    }
    this.#in(this.#failures > 0 ? Math.min(backoff(this.#failures), this.every / 2) : this.#soon ? 0 : this.every);
  }

  #restore(sent: [string, Said][]): void {
    for (const [receipt, old] of sent) {
      const said = this.running.get(receipt);
      if (said === undefined) continue;
      if (old.progress !== undefined) said.progress ??= old.progress;
      said.log = [...old.log, ...said.log].slice(-maxLines);
    }
  }
}

parentPort!.on("message", (m: ToBeats) => {
  if (m.do === "join") {
    members.set(m.worker, new Member(m.worker, m.every, m.ttl));
    return;
  }
  const member = members.get(m.worker);
  if (m.do === "flush" && member === undefined) tell({ flushed: m.ticket });
  if (member === undefined) return;
  if (m.do === "run") for (const receipt of m.receipts) member.running.set(receipt, { log: [] });
  else if (m.do === "end") for (const receipt of m.receipts) member.running.delete(receipt);
  else if (m.do === "say") member.say(m.receipt, m.progress, m.line);
  else if (m.do === "flush") member.flush(m.receipt, m.ticket);
  else member.leave();
});
