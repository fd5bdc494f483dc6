import type { StopReason } from "./errors.js";

/** What claim, finish and beat answer; results only finish. */
export interface News {
  jobs?: Record<string, any>[];
  cancel?: { receipt: string; reason: StopReason }[];
  drain?: boolean;
  results?: { status: "ok" | "fenced" | "invalid"; problem?: string }[] | null;
}

/** What a run says to people. */
export type Said = { progress?: { fraction: number; text: string }; log: string[] };

/** What the thread of the beats is told of a worker id, with receipts of jobs and with times of Date.now. */
export interface ToBeats {
  worker: string;
  join?: { home: number; ttl: number };
  /** By a claim that was sent since. */ run?: string[];
  since?: number;
  say?: { receipt: string } & Said;
  /** Tell when all is said. */ flush?: string;
  end?: string[];
  /** When the last claim was sent. */ moved?: number;
  leave?: true;
}

/** What that thread tells. */
export type FromBeats = { worker: string; news?: News; flushed?: string[]; lost?: boolean; problem?: string };
