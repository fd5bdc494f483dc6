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

/** What claim, finish and beat answer. */
export interface News {
  jobs?: ClaimedJob[];
  cancel?: { receipt: string; reason: StopReason }[];
  drain?: boolean;
  /** Of finish only: what came of each result. */
  results?: { status: "ok" | "fenced" | "invalid"; problem?: string }[];
}

/** What a run said since the last beat. */
export interface Said {
  progress?: { fraction: number; text: string };
  log?: string[];
}

/** What the thread of the beats is told: a worker id with its beats in milliseconds, or which receipts it runs. */
export type ToBeats = { worker: string; join?: { every: number; ttl: number }; run?: string[]; end?: string[]; leave?: true };

/** What that thread tells. */
export type FromBeats = { worker: string; news?: News; left?: "moved" | "gone" | "silent"; problem?: string };
