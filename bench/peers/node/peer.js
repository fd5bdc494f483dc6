// peer.js QUEUE enqueue|work LOAD does one part of the work of limits.go with a queue of JavaScript.
//
// LOAD is JSON: db, redis (the path of its socket), jobs, workers, ms (that a job takes), and of the limit atOnce,
// keys (0: one for all) and perSecond.
// Work ends when stdin does. It writes a line for each run of a handler: the job's number, and its
// beginning and end by the monotonic clock of the machine, in nanoseconds.

import { setTimeout as sleep } from 'node:timers/promises'

const [, , name, verb, text] = process.argv
const load = JSON.parse(text)
const key = n => `key-${n % load.keys}`
const numbers = Array.from({ length: load.jobs }, (_, n) => n)
const said = new Promise(done => process.stdin.on('end', done).resume())

async function handle({ n }) {
  const start = process.hrtime.bigint()
  if (load.ms > 0) await sleep(load.ms)
  process.stdout.write(`${n} ${start} ${process.hrtime.bigint()}\n`)
}

// batches calls f with a thousand numbers at a time.
async function batches(f) {
  for (let i = 0; i < numbers.length; i += 1000) await f(numbers.slice(i, i + 1000))
}

async function pgBoss() {
  const { PgBoss } = await import('pg-boss')
  const boss = new PgBoss({ connectionString: load.db, max: load.workers })
  boss.on('error', fail)
  await boss.start()
  return {
    async enqueue() {
      await boss.createQueue('load')
      await batches(some => boss.insert('load', some.map(n => ({ data: { n }, group: { id: load.keys ? key(n) : 'all' } }))))
    },
    async work() { // by fetch, since its workers ask twice a second at most when nothing waits
      let over = false
      const options = { groupConcurrency: load.atOnce, batchSize: load.keys ? 100 : 1 }
      const all = Array.from({ length: load.workers }, async () => {
        while (!over) {
          const jobs = await boss.fetch('load', options)
          if (jobs.length === 0) await sleep(5)
          await Promise.all(jobs.map(j => handle(j.data)))
          if (jobs.length > 0) await boss.complete('load', jobs.map(j => j.id))
        }
      })
      await said
      over = true
      await Promise.all(all)
    },
    close: () => boss.stop(),
  }
}

async function graphile() {
  const { makeWorkerUtils, run, Logger } = await import('graphile-worker')
  const logger = new Logger(() => () => {})
  const utils = await makeWorkerUtils({ connectionString: load.db, logger })
  await utils.migrate()
  return {
    enqueue: () => batches(some => utils.addJobs(some.map(n => ({ identifier: 'load', payload: { n }, queueName: key(n) })))),
    async work() {
      const runner = await run({
        connectionString: load.db, logger, concurrency: load.workers, maxPoolSize: load.workers, pollInterval: 5, noHandleSignals: true,
        taskList: { load: handle },
      })
      await said
      await runner.stop()
    },
    close: () => utils.release(),
  }
}

async function dbos() {
  const { DBOS, DBOSClient } = await import('@dbos-inc/dbos-sdk')
  DBOS.setConfig({
    name: 'load', systemDatabaseUrl: load.db, systemDatabasePoolSize: load.workers, logLevel: 'error', runAdminServer: false,
    listenQueues: verb === 'work' ? ['load'] : [],
  })
  DBOS.registerWorkflow(handle, { name: 'load' })
  await DBOS.launch() // which makes the tables
  return {
    async enqueue() {
      const client = await DBOSClient.create({ systemDatabaseUrl: load.db, systemDatabasePoolSize: 16 })
      const left = numbers.values()
      const options = { workflowName: 'load', queueName: 'load' }
      await Promise.all(Array.from({ length: 16 }, async () => {
        for (const n of left) await client.enqueue(load.keys ? { ...options, queuePartitionKey: key(n) } : options, { n })
      }))
      await client.destroy()
    },
    async work() {
      const limit = load.perSecond ? { rateLimit: { limitPerPeriod: load.perSecond, periodSec: 1 } } :
        load.keys ? { partitionConcurrency: load.atOnce } : { globalConcurrency: load.atOnce }
      await DBOS.registerQueue('load', { ...limit, minPollingIntervalMs: 5, onConflict: 'always_update' })
      await said
    },
    close: () => DBOS.shutdown(),
  }
}

async function bullmq() {
  const { Queue, Worker } = await import('bullmq')
  const connection = { path: load.redis }
  const queue = new Queue('load', { connection })
  return {
    async enqueue() {
      if (load.perSecond) await queue.setGlobalRateLimit(load.perSecond, 1000)
      else await queue.setGlobalConcurrency(load.atOnce)
      await batches(some => queue.addBulk(some.map(n => ({ name: 'load', data: { n } }))))
    },
    async work() {
      const worker = new Worker('load', job => handle(job.data), { connection, concurrency: load.workers })
      worker.on('error', fail)
      await said
      await worker.close()
    },
    close: () => queue.close(),
  }
}

function fail(err) {
  console.error(err)
  process.exit(1)
}

const queue = await { 'pg-boss': pgBoss, 'Graphile Worker': graphile, DBOS: dbos, BullMQ: bullmq }[name]()
await queue[verb]()
await queue.close()
process.exit(0)
