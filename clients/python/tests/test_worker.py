import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time

import stint

from .gateway import TOKEN, URL, GatewayCase, eventually


class WorkerTest(GatewayCase):
    def test_a_handler_gets_the_job_and_its_result_is_kept(self):
        got = []
        self.assertEqual(self.do(lambda job: got.append(job) or {"n": job.args["n"] + 1}, {"n": 1}, tags=["a"], metadata={"x": 1}), {"n": 2})
        job = got[0]
        self.assertEqual((job.id, job.kind, job.queue, job.attempt, job.tags, job.may_have_run, job.metadata["x"]),
                         (self.id, self.kind, "default", 1, ["a"], False, 1))
        self.assertRegex(job.created, r"^\d{4}-\d\d-\d\dT")

    def test_a_coroutine_function_is_a_handler(self):
        async def f(job):
            await asyncio.sleep(0.01)
            return job.args * 2

        self.assertEqual(self.do(f, 21), 42)

    def test_a_failure_has_class_message_and_stack(self):
        def f(job):
            return {}["absent"]

        err = self.fails(f, retry="none")
        self.assertEqual((err.state, err.error["class"], err.error["message"]), ("failed", "KeyError", "'absent'"))
        self.assertIn('return {}["absent"]', err.error["stack"])

    def test_no_retry_fails_at_once(self):
        def f(job):
            try:
                int("x")
            except ValueError as err:
                raise stint.NoRetry("bad number") from err

        err = self.fails(f, retry="fixed:5:10ms")
        self.assertEqual((err.error["class"], err.error["message"], len(self.attempts())), ("ValueError", "bad number", 1))

    def test_a_result_that_is_not_json_fails_the_job(self):
        self.assertIn("not JSON", str(self.fails(lambda job: {1, 2}, retry="fixed:5:10ms")))
        self.assertEqual(len(self.attempts()), 1)

    def test_an_outcome_that_the_gateway_refuses_fails_the_job(self):
        def f(job):
            if job.args == "snooze":
                raise stint.Snooze("1000000h")
            return "x" * job.args

        for args in ("snooze", 2 << 20):
            err = self.fails(f, args, retry="fixed:5:10ms")
            self.assertEqual((err.state, err.error["class"], len(self.attempts())), ("failed", "ValueError", 1))

    def test_defaults_of_a_kind_are_declared(self):
        def f(job):
            raise ValueError("always")

        self.fails(f, handler={"retry": "fixed:2:10ms", "queue": "py", "timeout": "7s", "priority": 3})
        job = self.client.job(self.id)
        self.assertEqual((job["queue"], job["timeout"], job["priority"], len(self.attempts())), ("py", "7s", 3, 3))

    def test_progress_and_lines_are_kept(self):
        def f(job):
            job.progress(0.25, "a quarter")
            job.log("a line")
            job.log("another\nand one more")
            job.progress(float("inf"))

        self.do(f)
        job = self.client.job(self.id)
        self.assertEqual([line["text"] for line in job["log"]], ["a line", "another", "and one more"])
        self.assertEqual(job["progress"][-1]["fraction"], 1)

    def test_lines_are_seen_while_the_job_runs(self):
        end = threading.Event()

        def f(job):
            job.log("first")
            end.wait(20)

        with self.working(f, time_to_live="5s"):
            id = self.client.enqueue(self.kind)
            try:
                eventually(lambda: self.client.job(id).get("log"))
            finally:
                end.set()

    def test_a_cancellation_is_heard_at_once_though_all_slots_are_full(self):
        begun = threading.Event()

        def f(job):
            begun.set()
            self.assertTrue(job.cancelled.wait(20))
            self.assertEqual(job.cancel_reason, "cancelled")
            job.raise_if_cancelled()

        with self.working(f, slots=1, time_to_live="2m"):  # so that no heartbeat tells it in time
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            time.sleep(0.5)
            self.client.cancel(id, "enough")
            with self.assertRaises(stint.JobFailed) as raised:
                self.client.result(id, 15)
            self.assertEqual(raised.exception.state, "cancelled")

    def test_the_task_of_an_async_handler_is_cancelled(self):
        begun, ended = threading.Event(), []

        async def f(job):
            begun.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                ended.append(job.cancel_reason)
                raise

        with self.working(f):
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            self.client.cancel(id)
            with self.assertRaises(stint.JobFailed) as raised:
                self.client.result(id)
            self.assertEqual((raised.exception.state, ended), ("cancelled", ["cancelled"]))

    def test_a_timeout_ends_a_run(self):
        async def f(job):
            await asyncio.sleep(30)

        err = self.fails(f, timeout="300ms", retry="none")
        self.assertEqual(err.state, "failed")

    def test_a_slot_that_comes_free_is_filled_at_once(self):
        with self.working(lambda job: time.sleep(0.6), slots=1):
            since = time.monotonic()
            for id in self.client.enqueue_many(self.kind, range(4)):
                self.client.result(id, 20)
            self.assertLess(time.monotonic() - since, 20)  # a poll takes 25

    def test_each_of_many_jobs_runs_once(self):
        ran = []

        async def f(job):
            ran.append(job.args)

        with self.working(f, slots=50):
            ids = self.client.enqueue_many(self.kind, range(2000))
            eventually(lambda: len(ran) >= 2000, 60)
            for id in (ids[0], ids[-1]):
                self.client.result(id)
        self.assertEqual(sorted(ran), list(range(2000)))

    def test_a_busy_handler_does_not_stop_the_beats(self):
        def f(job):
            end = time.monotonic() + 12
            while time.monotonic() < end:
                pass
            return job.attempt

        with self.working(f, time_to_live="10s"):
            id = self.client.enqueue(self.kind)
            self.assertEqual(self.client.result(id, 40), 1)
            self.assertEqual(len(self.attempts(id)), 1)

    def test_a_worker_takes_only_the_queues_that_it_names(self):
        with self.working(lambda job: None, queues=[f"q-{self.kind}"]):
            other = self.client.enqueue(self.kind)
            self.client.result(self.client.enqueue(self.kind, queue=f"q-{self.kind}"))
            self.assertEqual(self.client.job(other)["state"], "available")


class StopTest(GatewayCase):
    def test_a_graceful_stop_lets_jobs_end(self):
        begun = threading.Event()

        def f(job):
            begun.set()
            time.sleep(1)
            return "done"

        with self.working(f) as w:
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            w.stop(10)
        self.assertEqual(self.client.job(id)["attempts"][-1]["result"], "done")

    def test_a_stop_does_not_wait_for_the_poll(self):
        with self.working(lambda job: None) as w:
            time.sleep(0.3)
            since = time.monotonic()
            w.stop()
            self.assertLess(time.monotonic() - since, 15)  # a poll takes 25

    def test_after_the_grace_a_job_is_handed_back_uncharged(self):
        begun = threading.Event()

        def f(job):
            begun.set()
            if job.cancelled.wait(20):
                self.assertEqual(job.cancel_reason, "stopping")
                job.raise_if_cancelled()

        with self.working(f) as w:
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            w.stop(0.1)
        with self.working(lambda job: job.attempt):
            self.assertEqual(self.client.result(id), 1)

    def test_a_handler_that_does_not_stop_is_handed_back_too(self):
        begun, end = threading.Event(), threading.Event()

        def f(job):
            begun.set()
            end.wait(30)

        with self.working(f) as w:
            id = self.client.enqueue(self.kind)
            begun.wait(10)
            w.stop(0.1)
        with self.working(lambda job: "by another"):
            self.assertEqual(self.client.result(id), "by another")
        end.set()

    def test_a_worker_runs_in_an_asyncio_program(self):
        async def program():
            loop = asyncio.get_running_loop()
            w = self.worker()

            @w.handler(self.kind)
            async def f(job):
                return asyncio.get_running_loop() is loop

            w.start(loop)
            try:
                id = await asyncio.to_thread(self.client.enqueue, self.kind, force=True)
                return await asyncio.to_thread(self.client.result, id)
            finally:
                await asyncio.to_thread(w.stop)

        self.assertTrue(asyncio.run(program()))

    def test_a_signal_of_the_system_stops_a_worker(self):
        program = textwrap.dedent("""
            import stint, sys, time
            worker = stint.Worker()
            @worker.handler(sys.argv[1])
            def f(job):
                print("begun", flush=True)
                time.sleep(1)
                return "done"
            worker.run()
            print("stopped", flush=True)
        """)
        env = {**os.environ, "STINT_GATEWAY_URL": URL, "STINT_TOKEN": TOKEN}
        with subprocess.Popen([sys.executable, "-c", program, self.kind], env=env, stdout=subprocess.PIPE, text=True) as p:
            id = self.client.enqueue(self.kind, force=True)
            self.assertEqual(p.stdout.readline(), "begun\n")
            p.terminate()
            self.assertEqual(p.communicate(timeout=20)[0], "stopped\n")
            self.assertEqual((p.returncode, self.client.result(id)), (0, "done"))

    def test_a_wrong_token_is_an_error(self):
        w = self.worker(token="no-such-token")
        w.handler(self.kind)(lambda job: None)
        with self.assertRaises(stint.GatewayError) as raised:
            w.run()
        self.assertIn(raised.exception.status, (401, 403))
        self.assertNotIn("no-such-token", str(raised.exception))
