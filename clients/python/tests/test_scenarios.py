"""Replays clients/scenarios, which all clients share. Its README describes the format."""
import json
import os
from collections import Counter
from pathlib import Path

import stint

from .gateway import GatewayCase, eventually

FOLDER = Path(os.environ.get("STINT_TEST_SCENARIOS") or Path(__file__).parents[2] / "scenarios")


class Replay:
    """The handler of a scenario."""

    def __init__(self, scenario, client):
        self.runs, self.cancel, self.client = iter(scenario["runs"]), scenario.get("cancel"), client
        self.calls = Counter()
        self.problems = []

    def __call__(self, job):
        values = {}
        instructions = next(self.runs, None)
        if instructions is None:
            self.problems.append(f"run {job!r} is not foreseen")
            raise stint.NoRetry("not foreseen")
        for one in instructions:
            if self.ends(job, one):
                return job.args if "return_args" in one else values if "return_values" in one else one["return"]
            self.obey(job, one, values)

    def ends(self, job, one):
        return not {"return", "return_args", "return_values"}.isdisjoint(one)

    def obey(self, job, one, values):
        if "step" in one:
            values[one["step"]] = job.step(one["step"], lambda: self.step(one))
        elif "sleep" in one:
            job.sleep(one["sleep"], one["for"])
        elif "await" in one:
            try:
                values[one["await"]] = job.await_signal(one["await"], one["timeout"], one.get("signal"))
            except stint.NoSignal:
                values[one["await"]] = {"timed_out": True}
        elif "progress" in one:
            job.progress(one["progress"])
        elif "log" in one:
            job.log(one["log"])
        elif "fail" in one:
            raise (Exception if one.get("retry", True) else stint.NoRetry)(one["fail"])
        elif "snooze" in one:
            raise stint.Snooze(one["snooze"])
        elif "cancel" in one:
            raise stint.Cancel(one["cancel"])
        elif "wait_cancelled" in one:
            self.client.cancel(job.id, self.cancel["why"])
            job.cancelled.wait(20)
            job.raise_if_cancelled()
        else:
            raise AssertionError(f"what is {one}?")

    def step(self, one):
        self.calls[one["step"]] += 1
        if "fail" in one:
            raise Exception(one["fail"])
        return one["value"]


class ScenariosTest(GatewayCase):
    def test_all(self):
        scenarios = [json.loads(f.read_text("utf-8")) for f in sorted(FOLDER.glob("*.json"))]
        self.assertTrue(scenarios, FOLDER)
        worker = self.worker(slots=len(scenarios))
        replays = [Replay(s, self.client) for s in scenarios]
        for s, replay in zip(scenarios, replays):
            s["kind"] = f"{s['kind']}-{self.kind}"
            worker.handler(s["kind"])(replay)
        worker.start()
        self.addCleanup(worker.stop, 1)
        eventually(lambda: worker._members)
        ids = [self.client.enqueue(s["kind"], **s["enqueue"]) for s in scenarios]
        for id, s in sorted(zip(ids, scenarios), key=lambda x: [g["when"] for g in x[1].get("signals", ())], reverse=True):
            for one in s.get("signals", ()):
                eventually(lambda: self.client.job(id)["state"] == one["when"])
                self.client.signal(id, one["name"], one["value"])
        for id, s, replay in zip(ids, scenarios, replays):
            with self.subTest(s["name"]):
                self.check(id, s["expect"], replay)

    def check(self, id, expect, replay):
        try:
            self.client.result(id)
        except stint.JobFailed:
            pass
        job = self.client.job(id)
        attempts = [a for a in job["attempts"] if a["outcome"] != "returned"]
        self.assertEqual((job["state"], job["attempt"], [a["outcome"] for a in attempts]),
                         (expect["state"], expect["attempts"], expect["outcomes"]))
        self.assertEqual((replay.problems, list(replay.runs)), ([], []))
        if "result" in expect:
            self.assertEqual(attempts[-1].get("result"), expect["result"])
        if "error" in expect:
            self.assertEqual({k: attempts[-1]["error"][k] for k in expect["error"]}, expect["error"])
        if "reason" in expect:
            self.assertEqual(job["reason"], expect["reason"])
        if "progress" in expect:
            self.assertEqual(job["progress"][-1]["fraction"], expect["progress"])
        if "log" in expect:
            self.assertEqual([line["text"] for line in job["log"]], expect["log"])
        if "calls" in expect:
            self.assertEqual(replay.calls, expect["calls"])
