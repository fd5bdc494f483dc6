export { Client, type ClientEnqueueOptions, type JobInfo } from "./client.js";
export type { Duration } from "./duration.js";
export { enqueue, enqueueMany, type EnqueueOptions, type JobOptions, type NewJob, type Queryable } from "./enqueue.js";
export { Cancel, GatewayError, JobFailed, NoRetry, NoSignal, NotEnded, Snooze, Stopped, type StopReason, Suspended } from "./errors.js";
export type { GatewayOptions } from "./gateway.js";
export type { Job } from "./job.js";
export { type Handler, type KindOptions, Worker, type WorkerOptions } from "./worker.js";
