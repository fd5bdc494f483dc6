import assert from "node:assert/strict";
import { test } from "node:test";
import { Cancel, GatewayError, JobFailed, NoRetry, NoSignal, NotEnded, Snooze, Stopped, Suspended, Worker } from "stint-client";
import { attemptsOf, client, isThere, newKind, operate, options, skip, sleep, until, withWorker } from "./gateway.js";

class NoSuchImage extends Error {}

test("what a handler returns is the result", { skip }, async () => {
  const kind = newKind("add");
  await withWorker(
    (w) => w.handle<{ a: number; b: number }>(kind, (job) => ({ sum: job.args.a + job.args.b, tags: job.tags, meta: job.metadata, of: job.kind, attempt: job.attempt })),
    async () => {
      const id = await client.enqueue(kind, { a: 1, b: 2 }, { tags: ["x"], metadata: { y: 1 } });
      assert.deepEqual(await client.result(id, { timeout: "20s" }), { sum: 3, tags: ["x"], meta: { y: 1 }, of: kind, attempt: 1 });
    },
  );
});

test("a handler that returns nothing completes its job", { skip }, async () => {
  const kind = newKind("nothing");
  await withWorker((w) => w.handle(kind, () => {}), async () => assert.equal(await client.result(await client.enqueue(kind), { timeout: "20s" }), null));
});

test("an error is kept with its class, message and stack, and retried as the policy says", { skip }, async () => {
  const kind = newKind("fail");
  await withWorker(
    (w) => w.handle(kind, () => Promise.reject(new NoSuchImage("it is not there", { cause: new RangeError("inner") })), { retry: "fixed:1:10ms" }),
    async () => {
      const id = await client.enqueue(kind);
      const err = await client.result(id, { timeout: "20s" }).then(() => assert.fail(), (err: unknown) => err);
      assert.ok(err instanceof JobFailed);
      assert.equal(err.state, "failed");
      assert.equal(err.failure?.class, "NoSuchImage");
      assert.equal(err.failure?.message, "it is not there");
      assert.match(err.failure?.stack ?? "", /worker\.test\.[\s\S]*\[cause\]: RangeError: inner/);
      assert.equal((await attemptsOf(id)).length, 2);
    },
  );
});

test("NoRetry fails the job at once", { skip }, async () => {
  const kind = newKind("noretry");
  const handler = () => {
    throw new NoRetry("never", { cause: new NoSuchImage("x") });
  };
  await withWorker((w) => w.handle(kind, handler, { retry: "fixed:5:10ms" }), async () => {
    const id = await client.enqueue(kind);
    await assert.rejects(client.result(id, { timeout: "20s" }), JobFailed);
    const attempts = await attemptsOf(id);
    assert.equal(attempts.length, 1);
    assert.equal(attempts[0]?.error?.class, "NoSuchImage");
  });
});

test("Snooze runs the job again, uncharged", { skip }, async () => {
  const kind = newKind("snooze");
  let runs = 0;
  const handler = () => {
    if (++runs === 1) throw new Snooze("100ms");
    return runs;
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    const id = await client.enqueue(kind);
    assert.equal(await client.result(id, { timeout: "20s" }), 2);
    assert.deepEqual((await attemptsOf(id)).map((a) => a.outcome), ["snoozed", "completed"]);
  });
});

test("Cancel cancels the job", { skip }, async () => {
  const kind = newKind("cancel");
  await withWorker((w) => w.handle(kind, () => Promise.reject(new Cancel("nobody wants it"))), async () => {
    const err = await client.result(await client.enqueue(kind), { timeout: "20s" }).then(() => assert.fail(), (err: unknown) => err);
    assert.ok(err instanceof JobFailed);
    assert.equal(err.state, "cancelled");
    assert.match(err.message, /nobody wants it/);
  });
});

test("a result that is too large, no JSON, or refused by the gateway fails the attempt", { skip }, async () => {
  const kind = newKind("result");
  const handler = (job: { args: string }) => {
    if (job.args === "snooze") throw new Snooze("for a while");
    return job.args === "large" ? "x".repeat(1 << 20) : 1n;
  };
  await withWorker((w) => w.handle(kind, handler, { retry: "none" }), async () => {
    const [big, snooze, large] = await client.enqueueMany([{ kind, args: "big" }, { kind, args: "snooze" }, { kind, args: "large" }]);
    await assert.rejects(client.result(big!, { timeout: "20s" }), (err: JobFailed) => err.failure?.class === "TypeError");
    await assert.rejects(client.result(snooze!, { timeout: "20s" }), (err: JobFailed) => err.failure?.class === "RangeError");
    await assert.rejects(client.result(large!, { timeout: "20s" }), (err: JobFailed) => err.failure?.class === "RangeError" && /1048578 bytes/.test(err.message));
  }, { report: () => {} });
});

test("progress and log lines are seen while the job runs and after it", { skip }, async () => {
  const kind = newKind("say");
  let end = () => {};
  const handler = async (job: { progress(f: number, t: string): void; log(l: string): void }) => {
    job.progress(0.5, "page 1");
    job.log("first");
    await new Promise<void>((resolve) => (end = resolve));
    job.progress(0.75, "page 2");
    job.log("last");
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    const id = await client.enqueue(kind);
    const said = async () => {
      const { progress, log } = (await client.job(id)) as { progress?: { fraction: number; text: string }[]; log?: { text: string }[] };
      return [progress?.[0]?.fraction, progress?.[0]?.text, log?.map((line) => line.text)];
    };
    await until("the first line is there", async () => JSON.stringify(await said()) === JSON.stringify([0.5, "page 1", ["first"]]));
    end();
    await client.result(id, { timeout: "20s" });
    assert.deepEqual(await said(), [0.75, "page 2", ["first", "last"]]);
  });
});

test("a step that was recorded is not done again", { skip }, async () => {
  const kind = newKind("step");
  let charged = 0;
  let runs = 0;
  await withWorker(
    (w) =>
      w.handle(
        kind,
        async (job) => {
          const charge = await job.step("charge", () => ({ n: ++charged }));
          const none = await job.step("none", () => {});
          if (++runs === 1) throw new Error("again");
          return [charge, none];
        },
        { retry: "fixed:3:10ms" },
      ),
    async () => {
      assert.deepEqual(await client.result(await client.enqueue(kind), { timeout: "20s" }), [{ n: 1 }, null]);
      assert.deepEqual([charged, runs], [1, 2]);
    },
  );
});

test("the same step twice in a run is an error", { skip }, async () => {
  const kind = newKind("twice");
  const handler = async (job: { step<T>(name: string, f: () => T): Promise<T> }) => {
    await job.step("a", () => 1);
    await job.step("a", () => 2);
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    const id = await client.enqueue(kind);
    await assert.rejects(client.result(id, { timeout: "20s" }), /"a" is there twice/);
  });
});

test("a sleep ends the run, and the next one goes on, also if the handler swallows the suspension", { skip }, async () => {
  const kind = newKind("sleep");
  let runs = 0;
  await withWorker(
    (w) =>
      w.handle<{ swallow: boolean }>(kind, async (job) => {
        runs++;
        await job.sleep("short", "10ms");
        try {
          await job.sleep("long", "6s");
        } catch (err) {
          assert.ok(err instanceof Suspended);
          if (!job.args.swallow) throw err;
          return "swallowed";
        }
        return "slept";
      }),
    async () => {
      const ids = await client.enqueueMany([{ kind, args: { swallow: false } }, { kind, args: { swallow: true } }]);
      for (const id of ids) assert.equal(await client.result(id, { timeout: "20s" }), "slept");
      assert.equal(runs, 4);
    },
    { slots: 2 },
  );
});

test("a signal is awaited without a slot, and a wait can time out", { skip }, async () => {
  const kind = newKind("await");
  await withWorker(
    (w) =>
      w.handle<{ timeout: string }>(kind, async (job) => {
        try {
          return await job.awaitSignal<{ by: string }>("paid or not", { signal: "paid", timeout: job.args.timeout });
        } catch (err) {
          if (err instanceof NoSignal) return "nobody";
          throw err;
        }
      }),
    async () => {
      const id = await client.enqueue(kind, { timeout: "1h" });
      await until("it waits", async () => (await client.job(id)).state === "blocked");
      await client.signal(id, "paid", { by: "ada" }, { key: "k" });
      assert.deepEqual(await client.result(id, { timeout: "20s" }), { by: "ada" });
      assert.equal(await client.result(await client.enqueue(kind, { timeout: "500ms" }), { timeout: "15s" }), "nobody");
    },
    { slots: 1 },
  );
});

/** A handler that runs until it is aborted, and keeps why. */
function hangs(reasons: string[]) {
  return (job: { signal: AbortSignal }) =>
    new Promise<never>((_, reject) =>
      job.signal.addEventListener("abort", () => {
        reasons.push((job.signal.reason as Stopped).why);
        reject(job.signal.reason as Error);
      }),
    );
}

test("to cancel a job aborts its handler soon, also if all slots are taken", { skip }, async () => {
  const kind = newKind("hang");
  const reasons: string[] = [];
  await withWorker((w) => w.handle(kind, hangs(reasons)), async () => {
    const id = await client.enqueue(kind);
    await until("it runs", async () => (await client.job(id)).state === "running");
    await sleep(300);
    await client.cancel(id, "enough");
    await assert.rejects(client.result(id, { timeout: "15s" }), (err: JobFailed) => err.state === "cancelled");
    assert.deepEqual(reasons, ["cancelled"]);
  }, { slots: 1, timeToLive: "2m" }); // so that no heartbeat tells it in time
});

test("a job that runs longer than its timeout is aborted and fails", { skip }, async () => {
  const kind = newKind("timeout");
  const reasons: string[] = [];
  await withWorker((w) => w.handle(kind, hangs(reasons), { timeout: "500ms", retry: "none" }), async () => {
    await assert.rejects(client.result(await client.enqueue(kind), { timeout: "20s" }), (err: JobFailed) => err.state === "failed" && /timeout/i.test(err.message));
    assert.deepEqual(reasons, ["timeout"]);
  });
});

test("a worker that stops hands back what does not end within the grace", { skip }, async () => {
  const kind = newKind("grace");
  const reasons: string[] = [];
  let id = 0;
  let begun = false;
  const handler = (job: { signal: AbortSignal }) => ((begun = true), hangs(reasons)(job));
  await withWorker((w) => w.handle(kind, handler), async () => {
    id = await client.enqueue(kind);
    await until("it runs", () => begun);
  }, { grace: "200ms" });
  assert.deepEqual(reasons, ["stopping"]);
  await withWorker((w) => w.handle(kind, (job) => job.attempt), async () => {
    assert.equal(await client.result(id, { timeout: "20s" }), 1);
  });
});

test("a worker that stops lets jobs end that do so within the grace", { skip }, async () => {
  const kind = newKind("ends");
  let id = 0;
  let begun = false;
  const handler = async () => {
    begun = true;
    await sleep(1_000);
    return "done";
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    id = await client.enqueue(kind);
    await until("it runs", () => begun);
  });
  assert.equal(await client.result(id, { timeout: "20s" }), "done");
  assert.equal((await attemptsOf(id)).length, 1);
});

test("a busy main thread does not look dead", { skip }, async () => {
  const kind = newKind("busy");
  const handler = () => {
    for (const end = Date.now() + 12_000; Date.now() < end; );
    return "done";
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    const id = await client.enqueue(kind);
    assert.equal(await client.result(id, { timeout: "40s" }), "done");
    assert.equal((await attemptsOf(id)).length, 1);
  }, { timeToLive: "10s" });
});

test("no more jobs run at once than there are slots, and each runs once", { skip }, async () => {
  const kind = newKind("slots");
  let now = 0;
  let most = 0;
  const seen = new Map<number, number>();
  const handler = async (job: { id: number }) => {
    most = Math.max(most, ++now);
    seen.set(job.id, (seen.get(job.id) ?? 0) + 1);
    await sleep(Math.random() * 10);
    now--;
  };
  await withWorker((w) => w.handle(kind, handler), async () => {
    const ids = await client.enqueueMany(Array.from({ length: 300 }, () => ({ kind })));
    await until("all have ended", async () => seen.size === 300 && now === 0);
    for (const id of ids) await client.result(id, { timeout: "20s" });
    assert.ok([...seen.values()].every((n) => n === 1));
    assert.equal(most, 4);
  }, { slots: 4 });
});

test("a worker goes to the gateway that answers", { skip }, async () => {
  const kind = newKind("failover");
  await withWorker((w) => w.handle(kind, () => 1), async () => assert.equal(await client.result(await client.enqueue(kind), { timeout: "20s" }), 1), {
    gateway: ["http://127.0.0.1:1", options.gateway as string],
    report: () => {},
  });
});

test("a worker that is drained ends what runs, and then itself", { skip }, async () => {
  const kind = newKind("drain");
  const worker = new Worker({ ...options, instance: kind }).handle(kind, () => sleep(1_000).then(() => "done"));
  const ran = worker.run();
  await until("it has joined", () => isThere(kind));
  const id = await client.enqueue(kind, {}, { force: true });
  await until("it runs", async () => (await client.job(id)).state === "running");
  await sleep(200);
  await operate(kind, "drain");
  await ran;
  assert.equal(await client.result(id, { timeout: "20s" }), "done");
});

test("a worker that is buried aborts what runs, and joins anew", { skip }, async () => {
  const kind = newKind("bury");
  const reasons: string[] = [];
  const handler = (job: { mayHaveRun: boolean; signal: AbortSignal }) => (job.mayHaveRun ? "again" : hangs(reasons)(job));
  await withWorker((w) => w.handle<any>(kind, handler, { maxLosses: 3 }), async () => {
    const id = await client.enqueue(kind);
    await until("it runs", async () => (await client.job(id)).state === "running");
    await sleep(200);
    await operate(kind, "bury");
    assert.equal(await client.result(id, { timeout: "20s" }), "again");
    await until("its old run is aborted", () => reasons.length > 0);
    assert.deepEqual(reasons, ["lost"]);
  }, { instance: kind, report: () => {} });
});

test("a worker with a wrong token does not start, and says so without the token", { skip }, async () => {
  const worker = new Worker({ ...options, token: "a-wrong-token" }).handle("x", () => {});
  await assert.rejects(worker.start(), (err: GatewayError) => (err.status === 401 || err.status === 403) && !err.message.includes("a-wrong-token"));
});

test("a client tells what is not there and what takes too long", { skip }, async () => {
  await assert.rejects(client.job(2 ** 50), (err: GatewayError) => err.status === 404);
  const id = await client.enqueue(newKind("idle"), {}, { force: true, delay: "1h" });
  await assert.rejects(client.result(id, { timeout: "100ms" }), NotEnded);
  assert.equal(await client.cancel(id), "cancelled");
});
