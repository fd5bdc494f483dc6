// The thread that sends the beats, so that a main thread with much to do does not look dead.
// A worker needs them while it runs something: at other times its claims show that it lives.
import { parentPort, workerData } from "node:worker_threads";
import { backoff } from "./duration.js";
import { isGone } from "./errors.js";
import { Gateways, type GatewayOptions } from "./gateway.js";
import type { FromBeats, News, ToBeats } from "./protocol.js";

interface Member {
  home: number;
  every: number;
  ttl: number;
  running: Set<string>;
  good: number; // when it lived for certain
  failures: number;
  moved?: number;
  timer?: NodeJS.Timeout | undefined;
}

const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();
const tell = (message: FromBeats) => parentPort!.postMessage(message);

async function beat(worker: string, member: Member): Promise<void> {
  const { failures, moved, home, ttl } = member;
  const began = Date.now();
  const fence = () => member.good + ttl * 0.75; // what runs stops then: another worker may begin it a little later
  try {
    const running = Array.from(member.running, (receipt) => ({ receipt }));
    const body = { running, ...(moved && { moved_for: `${began - moved + 1}ms` }) };
    const at = failures === 0 && !moved ? { at: home } : {};
    const news = await gateways.call<News>("POST", `/workers/${worker}/beat`, { body, timeout: ttl / 4, ...at });
    member.good = began;
    member.failures = 0;
    if (news.cancel?.length) tell({ worker, news });
  } catch (err) {
    if (member.failures++ === 0) tell({ worker, problem: `a beat failed: ${(err as Error).message}` });
    const left = isGone(err) ? "gone" : Date.now() >= fence() ? "silent" : undefined;
    if (left && members.delete(worker)) tell({ worker, left });
  }
  member.timer = undefined;
  plan(worker, member, member.failures === 0 ? member.every : Math.min(backoff(member.failures), fence() - Date.now()));
}

function plan(worker: string, member: Member, wait: number): void {
  if (member.timer || member.running.size === 0 || members.get(worker) !== member) return;
  member.timer = setTimeout(() => {
    if (member.running.size > 0) void beat(worker, member);
    else member.timer = undefined;
  }, Math.max(0, wait));
}

parentPort!.on("message", ({ worker, join, run = [], since, end = [], moved, leave }: ToBeats) => {
  if (join) members.set(worker, { ...join, running: new Set(), good: 0, failures: 0 });
  const member = members.get(worker);
  if (!member) return;
  if (leave) {
    clearTimeout(member.timer);
    members.delete(worker);
  }
  for (const receipt of run) member.running.add(receipt);
  for (const receipt of end) member.running.delete(receipt);
  // A claim passes on that the worker lives if nothing did so for a quarter of the time to live.
  if (since) member.good = Math.max(member.good, since - member.every);
  if (moved) member.moved = moved;
  plan(worker, member, member.good + 2 * member.every - Date.now());
});
