import stint

from .gateway import GatewayCase, eventually


class StepsTest(GatewayCase):
    def test_steps_of_coroutine_functions(self):
        calls = []

        async def f(job):
            async def load():
                calls.append(1)
                return [1, 2]

            pages = await job.step_async("load", load)
            await job.sleep_async("a moment", "10ms")
            if job.attempt == 1:
                raise ValueError("again")
            return pages

        self.assertEqual(self.do(f, retry="fixed:3:10ms"), [1, 2])
        self.assertEqual(len(calls), 1)

    def test_two_steps_of_one_name_fail_the_job(self):
        def f(job):
            job.step("a", lambda: 1)
            job.step("a", lambda: 2)

        self.assertIn("'a'", str(self.fails(f, retry="fixed:3:10ms")))
        self.assertEqual(len(self.attempts()), 1)

    def test_a_signal_is_awaited_without_a_slot(self):
        def f(job):
            return job.await_signal("paid", timeout="1h")

        with self.working(f, slots=1):
            id = self.client.enqueue(self.kind)
            eventually(lambda: self.client.job(id)["state"] == "blocked")
            self.client.signal(id, "paid", {"by": "ada"}, key="k")
            self.client.signal(id, "paid", {"by": "ada"}, key="k")
            self.assertEqual(self.client.result(id), {"by": "ada"})

    def test_signals_of_one_name_are_awaited_in_a_loop(self):
        async def f(job):
            return [await job.await_signal_async(f"page {n}", "1h", signal="page") for n in range(3)]

        with self.working(f):
            id = self.client.enqueue(self.kind)
            for n in range(3):
                self.client.signal(id, "page", n)
            self.assertEqual(self.client.result(id), [0, 1, 2])

    def test_a_run_that_dropped_its_suspension_goes_on_later(self):
        def f(job):
            try:
                job.await_signal("go", timeout="1h")
            except BaseException:
                return "dropped"
            return "went"

        with self.working(f):
            id = self.client.enqueue(self.kind)
            eventually(lambda: self.client.job(id)["state"] == "blocked")
            self.client.signal(id, "go")
            self.assertEqual(self.client.result(id), "went")

    def test_a_step_that_is_not_json_raises_in_the_handler(self):
        def f(job):
            try:
                job.step("set", lambda: {1})
            except TypeError:
                return "told"

        self.assertEqual(self.do(f), "told")
