// A worker that is killed: its handler writes down when it begins and ends.
import { openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const { Worker } = await import(process.env.STINT_CLIENT);
const worker = new Worker({ gateway: process.env.STINT_GATEWAY_URL.split(","), token: process.env.STINT_TOKEN, slots: 5, timeToLive: "5s" });
const log = openSync(process.argv[2], "a");
const note = (what, job) => writeSync(log, `${what} ${job.id} ${process.hrtime.bigint()}\n`);

worker.handle("chaos", async (job) => {
  note("begin", job);
  try {
    await setTimeout(Math.random() * 50);
    if (Math.random() < 0.1) throw new Error("by chance");
    return { by: "node" };
  } finally {
    note("end", job);
  }
});

await worker.run();
