// A program of faktory-worker, a client of Faktory for Node: it pushes jobs, or works on them and writes down what it does.
const faktory = require(process.env.FAKTORY_CLIENT);
const { openSync, writeSync } = require("node:fs");
const { setTimeout: sleep } = require("node:timers/promises");

const [role, path, count] = process.argv.slice(2);

async function push() {
  const client = await faktory.connect();
  const jobs = [];
  for (let i = 0; i < Number(count); i++) {
    const job = client.job(i % 2 ? "odd" : "even", i, { name: "x" });
    job.jid = `job-${i}`;
    job.queue = i % 3 ? "bulk" : "urgent";
    job.custom = { trace: `t${i}` };
    jobs.push(job);
  }
  const again = jobs[0].toJSON();
  await jobs[0].push(); // twice more than once
  await client.sendWithAssert(["PUSH", JSON.stringify(again)], "OK");
  const rejected = await client.pushBulk(jobs);
  if (Object.keys(rejected).length) throw new Error(JSON.stringify(rejected));
  const info = await client.info();
  console.log(JSON.stringify({ queues: info.faktory.total_queues, enqueued: info.faktory.total_enqueued }));
  await client.close();
}

async function work() {
  const log = openSync(path, "a");
  const note = (what, job) => writeSync(log, `${what} ${job.jid} ${process.hrtime.bigint()}\n`);
  const handler = (name) => (...args) => async ({ job }) => {
    note("begin", job);
    await sleep(Math.random() * 40);
    if (job.jobtype !== name || job.custom.trace !== `t${args[0]}` || args[1].name !== "x") note("wrong", job);
    if (args[0] % 10 === 7 && !job.failure) {
      note("fail", job);
      throw new TypeError("the first time it fails");
    }
    note("end", job);
  };
  faktory.register("odd", handler("odd"));
  faktory.register("even", handler("even"));
  const worker = await faktory.work({ queues: ["urgent", "bulk"], concurrency: 5, beatInterval: 1 });
  worker.on("error", (e) => writeSync(log, `trouble ${e.message.replace(/\s+/g, "_")} 0\n`));
}

(role === "push" ? push() : work()).catch((e) => {
  console.error(e);
  process.exit(1);
});
