import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { Cancel, type ClientEnqueueOptions, type Job, NoRetry, NoSignal, Snooze } from "stint-client";
import { client, newKind, skip, until, withWorker } from "./gateway.js";

// What the fields are: README.md beside the scenarios.
interface Scenario {
  name: string;
  about: string;
  kind: string;
  enqueue: { args?: unknown } & ClientEnqueueOptions;
  runs: Record<string, any>[][];
  signals?: { when: string; name: string; value: unknown }[];
  cancel?: { why: string };
  expect: Record<string, any>;
}

const folder = process.env.STINT_TEST_SCENARIOS ?? fileURLToPath(new URL("../../../scenarios", import.meta.url));
const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")).sort() : [];
test("there are scenarios", { skip: process.env.STINT_TEST_SCENARIOS ? false : files.length === 0 && "there is no folder of scenarios" }, () => assert.ok(files.length > 0));

for (const file of files) {
  const scenario = JSON.parse(readFileSync(`${folder}/${file}`, "utf8")) as Scenario;
  test(`${scenario.name}: ${scenario.about}`, { skip }, () => replay(scenario));
}

async function replay({ kind: prefix, enqueue: { args, ...options }, runs, signals = [], cancel, expect }: Scenario): Promise<void> {
  const kind = newKind(prefix);
  const calls: Record<string, number> = {};
  let id = 0;
  let ran = 0;
  const onCancelWait = async () => {
    await until("the id is known", () => id !== 0);
    await client.cancel(id, cancel?.why);
  };
  const handler = (job: Job) => {
    assert.ok(ran < runs.length, "the handler is called more often than the scenario says");
    return perform(job, runs[ran++]!, calls, onCancelWait);
  };
  await withWorker((w) => w.handle<any>(kind, handler), async () => {
    id = await client.enqueue(kind, args, inCamelCase(options));
    for (const { when, name, value } of signals) {
      await until(`the job is ${when}`, async () => (await client.job(id)).state === when);
      await client.signal(id, name, value);
    }
    await client.result(id, { timeout: "30s" }).catch(() => {});
    assert.equal(ran, runs.length, "how often the handler is called");
    await compare(id, expect, calls);
  });
}

const inCamelCase = (options: object): ClientEnqueueOptions =>
  Object.fromEntries(Object.entries(options).map(([name, value]) => [name.replace(/_[a-z]/g, (part) => part[1]!.toUpperCase()), value]));

async function compare(id: number, expect: Record<string, any>, calls: Record<string, number>): Promise<void> {
  const job = await client.job(id);
  const attempts = (job.attempts ?? []).filter((attempt) => attempt.outcome !== "returned");
  const last = attempts.at(-1);
  assert.equal(job.state, expect.state);
  assert.equal(job.attempt, expect.attempts);
  assert.deepEqual(attempts.map((attempt) => attempt.outcome), expect.outcomes);
  if ("result" in expect) assert.deepEqual(last?.result ?? null, expect.result);
  if ("error" in expect) assert.equal(last?.error?.message, expect.error.message);
  if ("error" in expect && expect.error.class) assert.equal(last?.error?.class, expect.error.class);
  if ("reason" in expect) assert.equal(job.reason, expect.reason);
  const said = job as { progress?: { fraction: number }[]; log?: { text: string }[] };
  if ("progress" in expect) assert.equal(said.progress?.at(-1)?.fraction, expect.progress);
  if ("log" in expect) assert.deepEqual(said.log?.map((line) => line.text), expect.log);
  if ("calls" in expect) assert.deepEqual(calls, expect.calls);
}

/** Does in the handler of a job what one of the runs says. */
async function perform(job: Job, instructions: Record<string, any>[], calls: Record<string, number>, onCancelWait: () => Promise<void>): Promise<unknown> {
  const values: Record<string, unknown> = {};
  for (const x of instructions) {
    if ("step" in x)
      values[x.step] = await job.step(x.step, () => {
        calls[x.step] = (calls[x.step] ?? 0) + 1;
        if ("fail" in x) throw new Error(x.fail);
        return x.value;
      });
    else if ("sleep" in x) await job.sleep(x.sleep, x.for);
    else if ("await" in x) values[x.await] = await job.awaitSignal(x.await, { timeout: x.timeout, signal: x.signal ?? x.await }).catch(timedOut);
    else if ("progress" in x) job.progress(x.progress);
    else if ("log" in x) job.log(x.log);
    else if ("fail" in x) throw x.retry === false ? new NoRetry(x.fail) : new Error(x.fail);
    else if ("snooze" in x) throw new Snooze(x.snooze);
    else if ("cancel" in x) throw new Cancel(x.cancel);
    else if ("wait_cancelled" in x) await Promise.all([onCancelWait(), aborted(job.signal)]);
    else if ("return" in x) return x.return;
    else if ("return_args" in x) return job.args;
    else if ("return_values" in x) return values;
    else throw new NoRetry(`the test does not know the instruction ${JSON.stringify(x)}`);
  }
  return undefined;
}

function timedOut(err: unknown): unknown {
  if (err instanceof NoSignal) return { timed_out: true };
  throw err;
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => (signal.aborted ? reject(signal.reason) : signal.addEventListener("abort", () => reject(signal.reason))));
