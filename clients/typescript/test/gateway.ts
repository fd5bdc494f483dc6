import { randomBytes } from "node:crypto";
import { Client, type GatewayOptions, Worker, type WorkerOptions } from "stint-client";

const { STINT_TEST_GATEWAY: gateway, STINT_TEST_TOKEN: token } = process.env;

/** The gateway that the tests use, and why they are skipped if there is none. */
export const options: GatewayOptions = { gateway: gateway ?? "http://127.0.0.1:1", ...(token && { token }) };
export const skip = gateway ? false : "STINT_TEST_GATEWAY is not set";

export const client = new Client(options);

/** Returns the name of a kind that no other test has. */
export const newKind = (name: string) => `${name}_${randomBytes(4).toString("hex")}`;

/** Starts a worker that declare gives its handlers, has use do the test, and stops it. */
export async function withWorker(declare: (worker: Worker) => void, use: (worker: Worker) => Promise<void>, more: WorkerOptions = {}): Promise<void> {
  const worker = new Worker({ timeToLive: "5s", grace: "5s", ...options, ...more });
  declare(worker);
  await worker.start();
  try {
    await use(worker);
  } finally {
    await worker.stop();
  }
}

/** Waits until it is so, twenty seconds at most. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, seconds = 20): Promise<void> {
  for (const end = Date.now() + seconds * 1_000; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) if (await isSo()) return;
  throw new Error(`it is not so after ${seconds} seconds: ${what}`);
}

/** Returns the attempts of a job, but for those of engines that gave it back since they lack its kind. */
export const attemptsOf = async (id: number) => ((await client.job(id)).attempts ?? []).filter((a) => a.outcome !== "returned");

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const call = (path: string, init: RequestInit = {}) =>
  fetch(`${gateway}/api/v1/${path}`, { ...init, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } });

async function engineOf(instance: string): Promise<string | undefined> {
  const { items } = (await (await call("engines")).json()) as { items: { id: string; instance: string }[] };
  return items.find((engine) => engine.instance === instance)?.id;
}

/** Reports whether a worker of that name is in the roster. */
export const isThere = async (instance: string) => (await engineOf(instance)) !== undefined;

/** Has a worker drained or buried. */
export async function operate(instance: string, what: "drain" | "bury"): Promise<void> {
  const answer = await call(`engines/${await engineOf(instance)}/${what}`, { method: "POST", body: "{}" });
  if (!answer.ok) throw new Error(await answer.text());
}
