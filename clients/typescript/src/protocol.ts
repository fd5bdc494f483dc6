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

export interface Cancellation {
  receipt: string;
  reason: StopReason;
}

/** What claim, finish and beat answer. */
export interface News {
  jobs?: ClaimedJob[];
  cancel?: Cancellation[];
  drain?: boolean;
}

export interface FinishAnswer extends News {
  results: { status: "ok" | "fenced" | "invalid"; problem?: string }[];
}

export interface Joined {
  worker: string;
  instance: string;
  time_to_live: number;
  beat_every: number;
}

/** What the main thread tells the thread of the beats. */
export type ToBeats =
  | { do: "join"; worker: string; every: number; ttl: number }
  | { do: "run" | "end"; worker: string; receipts: string[] }
  | { do: "say"; worker: string; receipt: string; progress?: Said["progress"]; line?: string }
  | { do: "flush"; worker: string; receipt: string; ticket: number }
  | { do: "leave"; worker: string };

/** What the thread of the beats answers. */
export type FromBeats =
  | { worker: string; news: News }
  | { worker: string; left: "moved" | "gone" | "fenced" }
  | { worker: string; problem: string }
  | { flushed: number };

/** What a run said since the last beat. */
export interface Said {
  progress?: { fraction: number; text: string };
  log: string[];
}
