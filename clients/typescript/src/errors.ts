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
export class Snooze extends NamedError {
  constructor(readonly wait: Duration) {
    super(`run again in ${wait}`);
  }
}

/** Thrown by a handler, it cancels the job. */
export class Cancel extends NamedError {}

/**
 * Thrown by job.sleep, job.awaitSignal and sometimes job.step when the run is over and the job comes again later.
 * Let it pass. A handler that catches it gains nothing: what it returns is not recorded.
 */
export class Suspended extends NamedError {}

/** Thrown by job.awaitSignal when the time is over and no signal came. */
export class NoSignal extends NamedError {}

/** Why a run must stop: the job was cancelled, its time is over, the worker stops, or the worker lost the job. */
export type StopReason = "cancelled" | "timeout" | "stopping" | "lost";

/** The reason of job.signal when it is aborted. */
export class Stopped extends NamedError {
  constructor(readonly why: StopReason) {
    super(why === "timeout" ? "the job ran longer than its timeout" : `the run must stop: ${why}`);
  }
}

/** Thrown by Client.result when the job failed or was cancelled. The failure is that of its last attempt. */
export class JobFailed extends NamedError {
  constructor(readonly id: number, readonly state: string, readonly failure?: { class: string; message: string; stack?: string }, reason = "no reason was given") {
    super(`job ${id} is ${state}: ${failure?.message ?? reason}`);
  }
}

/** Thrown by Client.result when the job has not ended within the time. */
export class NotEnded extends NamedError {}

/** A gateway refused a request with that HTTP status, or (without a status) did not answer. */
export class GatewayError extends NamedError {
  constructor(message: string, readonly status?: number, options?: ErrorOptions) {
    super(message, options);
  }
}

// What the errors of calls mean to a worker: this gateway does not have it; it is no more; no gateway takes that; the same call may succeed later.
const statusOf = (err: unknown) => (err instanceof GatewayError ? err.status ?? 0 : -1);
export const isMoved = (err: unknown) => statusOf(err) === 404;
export const isGone = (err: unknown) => statusOf(err) === 410;
export const isRefused = (err: unknown) => [400, 413, 422].includes(statusOf(err));
export const isPassing = (err: unknown) => statusOf(err) === 0 || statusOf(err) === 429 || statusOf(err) >= 500;
