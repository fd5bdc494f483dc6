from datetime import datetime, timedelta, timezone

import stint

from .gateway import TOKEN, URL, GatewayCase


class ClientTest(GatewayCase):
    def test_options_reach_the_job(self):
        at = datetime.now(timezone.utc) + timedelta(hours=1)
        id = self.client.enqueue(self.kind, {"a": 1}, force=True, queue="later", run_at=at, priority=-5, retry="fixed:2:1s",
                                 timeout="1m", tags=["x"], description="a line", max_losses=1)
        job = self.client.job(id)
        self.assertEqual((job["queue"], job["priority"], job["tags"], job["max_losses"], job["args"], job["state"]),
                         ("later", -5, ["x"], 1, {"a": 1}, "scheduled"))
        self.assertLess(abs(datetime.fromisoformat(job["due"][:19] + "+00:00") - at), timedelta(seconds=1))

    def test_an_idempotency_key_makes_one_job(self):
        ids = {self.client.enqueue(self.kind, 1, force=True, delay="1h", idempotency_key=self.kind) for _ in range(3)}
        self.assertEqual(len(ids), 1)

    def test_many_are_enqueued_in_order(self):
        ids = self.client.enqueue_many(self.kind, range(50), force=True, delay="1h")
        self.assertEqual([self.client.job(ids[n])["args"] for n in (0, 49)], [0, 49])

    def test_a_job_that_has_not_ended_is_a_timeout(self):
        id = self.client.enqueue(self.kind, force=True, delay="1h")
        with self.assertRaises(TimeoutError):
            self.client.result(id, 0.1)

    def test_a_cancelled_job_has_no_result(self):
        id = self.client.enqueue(self.kind, force=True, delay="1h")
        self.client.cancel(id, "not needed")
        with self.assertRaises(stint.JobFailed) as raised:
            self.client.result(id)
        self.assertEqual(raised.exception.state, "cancelled")

    def test_problems_are_told(self):
        with self.assertRaises(stint.GatewayError) as raised:
            self.client.job(1 << 40)
        self.assertEqual(raised.exception.status, 404)
        self.assertIn(f"/api/v1/jobs/{1 << 40}?", str(raised.exception))
        with self.assertRaises(stint.GatewayError):
            self.client.enqueue(self.kind, retry="sometimes", force=True)
        with self.assertRaises(stint.GatewayError):
            self.client.enqueue(self.kind, dealy="5m")

    def test_the_second_gateway_is_asked_when_the_first_is_away(self):
        for _ in range(6):  # one of the two is chosen at random
            client = stint.Client(["http://127.0.0.1:1", URL], TOKEN)
            self.addCleanup(client.close)
            client.enqueue(self.kind, force=True, delay="1h")

