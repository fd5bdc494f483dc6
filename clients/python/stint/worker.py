"""The worker: which handlers it has, how it starts, and how it stops."""
import asyncio
import inspect
import logging
import os
import signal
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Sequence, TypeVar

from . import runs
from .errors import Duration, GatewayError, text
from .gateway import Gateways, backoff
from .job import Job
from .membership import Membership

log = logging.getLogger("stint")
F = TypeVar("F", bound=Callable[..., Any])


class Worker:
    """Runs jobs. gateway is one URL or several of the same database, by default STINT_GATEWAY_URL; the token is that of the URL's
    ?token=, or STINT_TOKEN. Of queues None is all. slots is how many jobs run at once."""

    def __init__(self, gateway: str | Sequence[str] | None = None, token: str | None = None, *,
                 queues: Sequence[str] | None = None, slots: int = 10, instance: str | None = None,
                 time_to_live: Duration = "30s", version: str | None = None) -> None:
        self._gateways, self._slots = Gateways(gateway, token), slots
        self._card: dict[str, Any] = {"slots": slots, "time_to_live": text(time_to_live), "host": socket.gethostname(), "pid": os.getpid(), "kinds": []}
        self._card.update({k: v for k, v in (("queues", queues and list(queues)), ("instance", instance), ("version", version)) if v})
        self._handlers: dict[str, Callable[[Job], Any]] = {}
        self._members: list[Membership] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = float("inf")  # when what runs is cancelled
        self._stopping, self._lock = threading.Event(), threading.Lock()
        self._stopped: Future[Exception | None] = Future()

    def handler(self, kind: str, *, queue: str | None = None, priority: int | None = None, retry: str | None = None,
                timeout: Duration | None = None, max_losses: int | None = None) -> Callable[[F], F]:
        """Decorate the function, or coroutine function, of a kind: it gets the Job, and returns the result. Options are defaults."""
        said = {"name": kind, "queue": queue, "priority": priority, "retry": retry, "timeout": timeout and text(timeout), "max_losses": max_losses}

        def register(f: F) -> F:
            self._handlers[kind] = f
            self._card["kinds"].append({k: v for k, v in said.items() if v is not None})
            return f

        return register

    def run(self, grace: float = 30.0) -> None:
        """Work until SIGTERM, SIGINT, or stint engines drain. After the first jobs have so many seconds; a second exits at once."""
        def on_signal(n: int, _: Any) -> None:
            if self._stopping.is_set():
                os._exit(128 + n)
            runs.in_thread(lambda: self._begin_stop(grace))  # its lock may be held by this thread

        main = threading.current_thread() is threading.main_thread()
        before = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)} if main else {}
        try:
            self.start()
            if failure := self._stopped.result():
                raise failure
        finally:
            for n, h in before.items():
                signal.signal(n, h)

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Work in threads of its own; returns at once. Async handlers run in loop, or else in one of the worker's."""
        self._loop = own = loop or asyncio.new_event_loop()
        if loop is None:
            own.set_default_executor(ThreadPoolExecutor(self._slots))  # for steps and sleeps
            self._stopped.add_done_callback(lambda _: own.call_soon_threadsafe(own.stop))
            self._spawn(lambda: (own.run_forever(), own.close()))
        self._spawn(self._work)

    def stop(self, grace: float = 30.0) -> None:
        """Claim no more, let what runs end for so many seconds, then cancel it and hand it back. Returns when that is done."""
        self._begin_stop(grace)
        self._stopped.result()

    def _spawn(self, f: Callable[[], Any]) -> None:
        """A thread for f. If that raises the worker stops: without one of its threads it would be worse than none."""
        def run() -> None:
            try:
                f()
            except Exception as err:
                self._begin_stop(0.0, err)

        runs.in_thread(run)

    def _work(self) -> None:
        """Claim by one membership after another."""
        pause = backoff()
        while not self._stopping.is_set():
            try:
                if not self._members or not self._members[-1].claims:
                    m = Membership(self._gateways, self._card, lambda: max(0, self._slots - len(self._jobs())), self._begin, self._spawn)
                    self._members = [old for old in self._members if old.jobs] + [m]
                if self._members[-1].poll():
                    self._begin_stop(float("inf"))
                pause = backoff()
            except GatewayError as err:
                if not self._members and not err.temporary:
                    return self._begin_stop(0.0, err)
                log.warning("claim: %s", err)
                self._stopping.wait(next(pause))
        for m in self._members:
            m.stop()  # also one that joined meanwhile

    def _jobs(self) -> list[Job]:
        return [job for m in self._members for job in list(m.jobs.values())]

    def _begin(self, job: Job, ended: runs.Ended) -> None:
        """Start the handler of a job that was claimed."""
        f = self._handlers[job.kind]
        if self._loop is None or self._stopping.is_set():
            ended(job, runs.back(job))
        elif inspect.iscoroutinefunction(f):
            asyncio.run_coroutine_threadsafe(runs.run_async(job, f, ended), self._loop)
        else:
            runs.in_thread(lambda: runs.run(job, f, ended))

    def _begin_stop(self, grace: float, failure: Exception | None = None) -> None:
        """Stop within grace. A later call may shorten it."""
        with self._lock:
            self._deadline = min(self._deadline, time.monotonic() + grace)
            if not self._stopping.is_set():
                self._stopping.set()
                log.info("the worker stops: %s", failure or "as told")
                runs.in_thread(lambda: self._stop(failure))

    def _stop(self, failure: Exception | None) -> None:
        for m in self._members:
            m.stop()
        for more in (0.0, 5.0):  # so many seconds cancelled handlers have before their jobs are handed back
            while self._jobs() and time.monotonic() < self._deadline + more:
                time.sleep(0.02)
            for job in self._jobs():
                job._cancel("stopping")
        for m in self._members:
            m.leave()
        self._gateways.close()
        self._stopped.set_result(failure)
