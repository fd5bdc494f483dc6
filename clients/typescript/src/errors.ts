import type { Duration } from "./duration.js";

abstract class NamedError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
/** Thrown by a handler, it fails the job without a retry. People see the class of the cause, if there is one. */
export class NoRetry extends NamedError {}
/** Thrown by a handler, it has the job run again after that time. The attempt is not charged. */
export class Snooze extends NamedError { constructor(readonly wait: Duration) { super(`run again in ${wait}`); } }
/** Thrown by a handler, it cancels the job. */
export class Cancel extends NamedError {}
/** Thrown by job.sleep, job.awaitSignal and sometimes job.step when the run is over and the job comes again. Let it pass: what else the handler does is not recorded. */
export class Suspended extends NamedError {}
/** Thrown by job.awaitSignal when the time is over and no signal came. */
export class NoSignal extends NamedError {}
/** Why a run must stop: the job was cancelled, its time is over, the worker stops, or the worker lost the job. */
export type StopReason = "cancelled" | "timeout" | "stopping" | "lost";
/** The reason of job.signal when it is aborted. */
export class Stopped extends NamedError {
  constructor(readonly why: StopReason) { super(why === "timeout" ? "the job ran longer than its timeout" : `the run must stop: ${why}`); }
}
/** Thrown by Client.result when the job failed or was cancelled. The failure is that of its last attempt. */
export class JobFailed extends NamedError {
  constructor(readonly id: number, readonly state: string, readonly failure?: { class: string; message: string; stack?: string }, reason = "no reason was given") {
    super(`job ${id} is ${state}: ${failure?.message ?? reason}`);
  }
}
/** Thrown by Client.result when the job has not ended within the time. */
export class NotEnded extends NamedError {}
/** A gateway refused a request with that HTTP status, or did not answer: 0. */
export class GatewayError extends NamedError { constructor(message: string, readonly status: number) { super(message); } }

// What the errors of calls mean: this gateway does not have the worker; it is no more; no gateway takes that; the same call may succeed later.
const has = (err: unknown, isSo: (status: number) => boolean) => err instanceof GatewayError && isSo(err.status);
export const isMoved = (err: unknown) => has(err, (status) => status === 404);
export const isGone = (err: unknown) => has(err, (status) => status === 410);
export const isRefused = (err: unknown) => has(err, (status) => [400, 413, 422].includes(status));
export const isPassing = (err: unknown) => has(err, (status) => status === 0 || status === 429 || status >= 500);
