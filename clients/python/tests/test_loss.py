import threading
import time

from .gateway import GatewayCase, Wire, eventually


class LossTest(GatewayCase):
    def setUp(self):
        super().setUp()
        self.wire = Wire()
        self.addCleanup(self.wire.close)

    def test_work_goes_on_after_the_wire_was_cut(self):
        with self.working(lambda job: job.args, gateway=self.wire.url) as w:
            self.client.result(self.client.enqueue(self.kind, 1))
            before = w._members[-1]
            self.wire.set("cut")
            id = self.client.enqueue(self.kind, 2)
            time.sleep(1)
            self.wire.set("open")
            self.assertEqual(self.client.result(id), 2)
            self.assertIs(w._members[-1], before)

    def test_a_result_whose_answer_was_lost_counts_once(self):
        ran = []

        def f(job):
            ran.append(job.args)
            self.wire.set("mute")
            return job.args

        with self.working(f, gateway=self.wire.url):
            id = self.client.enqueue(self.kind, 1)
            self.assertEqual(self.client.result(id), 1)
            self.wire.set("cut")
            self.wire.set("open")
            id2 = self.client.enqueue(self.kind, 2)
            eventually(lambda: 2 in ran)
            self.wire.set("cut")
            self.wire.set("open")
            self.client.result(id2)
            self.wire.set("open")
            self.assertEqual((ran, len(self.attempts(id))), ([1, 2], 1))

    def test_a_worker_that_cannot_beat_fences_itself(self):
        begun, reasons = threading.Event(), []

        def f(job):
            if begun.is_set():
                return "again"
            begun.set()
            job.cancelled.wait(20)
            reasons.append(job.cancel_reason)
            return "too late"

        with self.working(f, gateway=self.wire.url, time_to_live="5s", slots=2):
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            self.wire.set("cut")
            eventually(lambda: reasons, 10)  # its handler waits for 20
            self.assertEqual(reasons, ["lost"])
            self.wire.set("open")
            self.assertEqual(self.client.result(id, 40), "again")

    def test_the_next_gateway_is_used_when_one_is_cut(self):
        second = Wire()
        self.addCleanup(second.close)
        with self.working(lambda job: job.args, gateway=[self.wire.url, second.url]) as w:
            self.client.result(self.client.enqueue(self.kind, 1))
            used = self.wire if w._gateways.current.url == self.wire.url else second
            used.set("cut")
            self.assertEqual(self.client.result(self.client.enqueue(self.kind, 2), 20), 2)  # a poll takes 25

    def test_a_poll_that_asks_for_nothing_is_not_waited_for(self):
        with self.working(lambda job: time.sleep(1), gateway=self.wire.url, slots=1):
            for id in self.client.enqueue_many(self.kind, range(3)):
                self.client.result(id)
            self.assertTrue(any("/finish" in line for line in self.wire.heard))

    def test_a_drained_worker_stops_when_its_jobs_have_ended(self):
        with self.working(lambda job: time.sleep(1) or "done", time_to_live="5s") as w:
            id = self.client.enqueue(self.kind)
            eventually(w._jobs)
            self.client._call("POST", f"/engines/{w._members[-1].id}/drain", {})
            w._stopped.result(20)
            self.assertEqual(self.client.result(id), "done")

    def test_buried_workers_join_anew(self):
        with self.working(lambda job: job.cancelled.wait(20) and job.cancel_reason, instance=self.kind, time_to_live="5s") as w:
            before = w._members[-1]
            id = self.client.enqueue(self.kind)
            eventually(lambda: before.jobs)
            self.client._call("POST", f"/engines/{before.id}/bury", {})
            eventually(lambda: w._members[-1] is not before)
            eventually(lambda: self.client.job(id)["state"] == "running" and w._members[-1].jobs)
            self.assertTrue(before._lost)
