import type { StopReason } from "./errors.js";

/** A job as a claim answers it. */
export interface ClaimedJob {
  receipt: string;
  id: number;
  kind: string;
  queue: string;
  args: unknown;
  attempt: number;
  timeout?: number;
  tags?: string[];
  metadata?: Record<string, unknown>;
  correlation?: string;
  may_have_run?: boolean;
  created: string;
  steps?: Record<string, unknown>;
}

/** What claim, finish and beat answer; results only finish. */
export interface News {
  jobs?: ClaimedJob[];
  cancel?: { receipt: string; reason: StopReason }[];
  drain?: boolean;
  results?: { status: "ok" | "fenced" | "invalid"; problem?: string }[] | null;
}

/** What the thread of the beats is told of a worker id. Times are those of Date.now. */
export interface ToBeats {
  worker: string;
  join?: { home: number; every: number; ttl: number };
  /** Receipts of jobs, by a claim that was sent then. */ run?: string[];
  since?: number;
  end?: string[];
  /** When the last claim was sent. */ moved?: number;
  leave?: true;
}

/** What that thread tells. */
export type FromBeats = { worker: string; news?: News; left?: true; problem?: string };
