import { setTimeout } from "node:timers/promises";

/** A duration: "250ms", "30s", "1m30s", "336h", "14d". */
export type Duration = string;

const inMilliseconds: Record<string, number> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Returns a duration in milliseconds. Throws a RangeError if the text is none. */
export function milliseconds(text: Duration): number {
  if (!/^(\d+(\.\d+)?(ns|us|ms|s|m|h|d|w))+$/.test(text)) throw new RangeError(`${JSON.stringify(text)} is no duration such as 30s, 1m30s or 24h`);
  return [...text.matchAll(/([\d.]+)(ns|us|ms|s|m|h|d|w)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * inMilliseconds[unit!]!, 0);
}

/** A clock in milliseconds that nobody sets, the same in all threads. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000_000n);
/** Resolves after so many milliseconds, or at once when the signal is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> => setTimeout(ms, undefined, signal && { signal }).catch(() => {});

/** Returns how long to wait before a call is repeated, up to 5 seconds, with jitter. */
export const backoff = (failures: number): number => Math.min(5_000, 100 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
