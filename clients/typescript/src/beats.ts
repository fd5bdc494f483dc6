import { Worker as Thread } from "node:worker_threads";
import type { GatewayOptions } from "./gateway.js";
import type { FromBeats, ToBeats } from "./protocol.js";

/** The main thread's side of the thread that sends the beats. */
export class Beats {
  readonly #thread: Thread;
  readonly #flushes = new Map<number, () => void>();
  #tickets = 0;

  /** Tells each message of the thread to hear, and to broke that the thread has ended by itself. */
  constructor(options: GatewayOptions, hear: (message: Exclude<FromBeats, { flushed: number }>) => void, broke: (err: Error) => void) {
    this.#thread = new Thread(new URL("./beat-thread.js", import.meta.url), { workerData: options, name: "stint-beats" });
    this.#thread.on("error", (err) => {
      for (const done of this.#flushes.values()) done();
      this.#flushes.clear();
      broke(err as Error);
    });
    this.#thread.on("message", (message: FromBeats) => {
      if (!("flushed" in message)) return hear(message);
      this.#flushes.get(message.flushed)?.();
      this.#flushes.delete(message.flushed);
    });
  }

  tell(message: ToBeats): void {
    this.#thread.postMessage(message);
  }

  /** Resolves when what a run said has reached a gateway, or cannot any more. */
  flush(worker: string, receipt: string): Promise<void> {
    const ticket = ++this.#tickets;
    return new Promise((resolve) => {
      this.#flushes.set(ticket, resolve);
      this.tell({ do: "flush", worker, receipt, ticket });
    });
  }

  async close(): Promise<void> {
    for (const done of this.#flushes.values()) done();
    await this.#thread.terminate();
  }
}
