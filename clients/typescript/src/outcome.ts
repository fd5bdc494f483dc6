import { inspect } from "node:util";
import { Cancel, NoRetry, Snooze, type Stopped } from "./errors.js";
import type { Job } from "./job.js";

const maxResult = 1 << 20; // bytes that a gateway takes
const maxText = 16_384; // characters of a message or stack

/** Calls the handler of a job. Returns how that ended, as a member of a JSON object, or undefined if it is not to be sent. */
export async function perform(job: Job, handler: (job: Job<any>) => unknown): Promise<string | undefined> {
  const ended = Promise.resolve(job).then(handler).then(succeeded);
  const outcome = await ended.catch((err: unknown) => thrown(err, job.signal.reason as Stopped | undefined));
  if (job.over === "returned") return `"return":true`;
  return job.over === undefined ? outcome : undefined;
}

function succeeded(result: unknown): string {
  const text = JSON.stringify(result ?? null) ?? "null";
  const length = Buffer.byteLength(text);
  if (length > maxResult) throw new RangeError(`the result has ${length} bytes of JSON: more than ${maxResult}`);
  return `"result":${text}`;
}

function thrown(err: unknown, stopped: Stopped | undefined): string {
  if (err instanceof Snooze) return `"snooze":${JSON.stringify(String(err.wait))}`;
  if (err instanceof Cancel) return `"cancel":${JSON.stringify(err.message)}`;
  if (stopped?.why === "cancelled") return `"cancel":"cancelled"`;
  if (stopped?.why === "stopping") return `"return":true`;
  if (!(err instanceof Error)) return failed("Error", String(err));
  if (stopped?.why === "timeout" && (err === stopped || err.name === "AbortError")) return failed("Timeout", stopped.message);
  const named = err instanceof NoRetry && err.cause instanceof Error ? err.cause : err;
  return failed(named.constructor.name, err.message, { stack: inspect(err).slice(0, maxText), ...(err instanceof NoRetry && { retry: false }) });
}

/** Returns a failed outcome. */
export function failed(name: string, message: string, more: { stack?: string; retry?: false } = {}): string {
  return `"error":${JSON.stringify({ class: name, message: message.slice(0, maxText), ...more })}`;
}
