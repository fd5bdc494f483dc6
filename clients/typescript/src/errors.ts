import type { Duration } from "./duration.js";

/** Thrown by a handler, it fails the job without a retry. The class that people see is that of the cause, if there is one. */
export class NoRetry extends Error {
  override name = "NoRetry";
}

/** Thrown by a handler, it has the job run again after that time. The attempt is not charged. */
export class Snooze extends Error {
  override name = "Snooze";
  constructor(readonly wait: Duration) {
    super(`run again in ${wait}`);
  }
}

/** Thrown by a handler, it cancels the job. */
export class Cancel extends Error {
  override name = "Cancel";
}

/**
 * Thrown by job.sleep and job.awaitSignal when the run is over and the job comes again later.
 * Let it pass. A handler that catches it gains nothing: what it returns is not recorded.
 */
export class Suspended extends Error {
  override name = "Suspended";
}

/** Thrown by job.awaitSignal when the time is over and no signal came. */
export class NoSignal extends Error {
  override name = "NoSignal";
}

/** Why a run must stop: the job was cancelled, its time is over, the worker stops, or the worker lost the job. */
export type StopReason = "cancelled" | "timeout" | "stopping" | "lost";

/** The reason of job.signal when it is aborted. */
export class Stopped extends Error {
  override name = "Stopped";
  constructor(readonly why: StopReason) {
    super(why === "timeout" ? "the job ran longer than its timeout" : `the run must stop: ${why}`);
  }
}

/** Thrown by Client.result when the job failed or was cancelled. */
export class JobFailed extends Error {
  override name = "JobFailed";
  constructor(
    readonly id: number,
    readonly state: string,
    /** What the last attempt says: the class is that of the handler's language. */
    readonly failure: { class?: string; message?: string; stack?: string } | undefined,
    reason?: string,
  ) {
    super(`job ${id} is ${state}: ${failure?.message ?? reason ?? "no reason was given"}`);
  }
}

/** Thrown by Client.result when the job has not ended within the time. */
export class NotEnded extends Error {
  override name = "NotEnded";
}

/** A gateway refused a request, or (without a status) did not answer. */
export class GatewayError extends Error {
  override name = "GatewayError";
  constructor(
    message: string,
    /** The HTTP status; undefined if there was no answer. */
    readonly status?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Reports whether the same request may succeed later. */
  get passes(): boolean {
    return this.status === undefined || this.status >= 500 || this.status === 429;
  }
}
