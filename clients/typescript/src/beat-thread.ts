// The thread that sends the beats, so that a main thread with much to do does not look dead.
import { parentPort, workerData } from "node:worker_threads";
import { backoff } from "./duration.js";
import { isGone, isMoved } from "./errors.js";
import { Gateways, type GatewayOptions } from "./gateway.js";
import type { FromBeats, News, ToBeats } from "./protocol.js";

interface Member {
  running: Set<string>;
  every: number;
  ttl: number;
  good: number; // when the last beat began that succeeded
  failures: number;
  timer?: NodeJS.Timeout;
}

const gateways = new Gateways(workerData as GatewayOptions);
const members = new Map<string, Member>();
const tell = (message: FromBeats) => parentPort!.postMessage(message);

async function beat(worker: string, member: Member): Promise<void> {
  const began = Date.now();
  try {
    const body = { running: Array.from(member.running, (receipt) => ({ receipt })) };
    const news = await gateways.call<News>("POST", `/workers/${worker}/beat`, { body, timeout: Math.min(member.every, member.ttl / 4) });
    member.good = began;
    member.failures = 0;
    if (news.cancel?.length) tell({ worker, news });
  } catch (err) {
    if (member.failures++ === 0) tell({ worker, problem: `a beat failed: ${(err as Error).message}` });
    if (isMoved(err)) tell({ worker, left: "moved" });
    const silent = Date.now() - member.good >= member.ttl * 0.75;
    if (isGone(err) || silent) {
      members.delete(worker);
      return tell({ worker, left: isGone(err) ? "gone" : "silent" });
    }
  }
  if (!members.has(worker)) return;
  const fence = member.good + member.ttl * 0.75 - Date.now();
  const wait = member.failures === 0 ? member.every : Math.min(backoff(member.failures), fence);
  member.timer = setTimeout(() => void beat(worker, member), Math.max(0, wait));
}

parentPort!.on("message", ({ worker, join, run = [], end = [], leave }: ToBeats) => {
  if (join) {
    const member: Member = { ...join, running: new Set(), good: Date.now(), failures: 0 };
    member.timer = setTimeout(() => void beat(worker, member), join.every);
    members.set(worker, member);
  }
  const member = members.get(worker);
  for (const receipt of run) member?.running.add(receipt);
  for (const receipt of end) member?.running.delete(receipt);
  if (!leave) return;
  clearTimeout(member?.timer);
  members.delete(worker);
});
