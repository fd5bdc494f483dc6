"""The worker: which handlers it has, how it starts, and how it stops."""
from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import socket
import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from . import outcome, threads
from .errors import Duration, GatewayError, text
from .gateway import Gateways, backoff
from .job import Job
from .membership import Membership

log = logging.getLogger("stint")
F = TypeVar("F", bound=Callable[..., Any])
LAST_WORDS = 5.0  # seconds that cancelled handlers have before their jobs are handed back


class Worker:
    """Runs jobs. gateway is one URL or several of the same database, by default STINT_GATEWAY_URL; the token is that of the URL's
    ?token=, or STINT_TOKEN. Of queues None is all. slots is how many jobs run at once."""

    def __init__(self, gateway: Union[str, Sequence[str], None] = None, token: Optional[str] = None, *,
                 queues: Optional[Sequence[str]] = None, slots: int = 10, instance: Optional[str] = None,
                 time_to_live: Duration = "30s", version: Optional[str] = None) -> None:
        self._gateways, self._slots = Gateways(gateway, token), slots
        self._card: Dict[str, Any] = {"slots": slots, "time_to_live": text(time_to_live), "host": socket.gethostname(), "pid": os.getpid(), "kinds": []}
        self._card.update({k: v for k, v in (("queues", queues and list(queues)), ("instance", instance), ("version", version)) if v})
        self._handlers: Dict[str, Callable[[Job], Any]] = {}
        self._members: List[Membership] = []
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._own_loop: Optional[asyncio.AbstractEventLoop] = None
        self._deadline = float("inf")  # when what runs is cancelled
        self._stopping = threading.Event()
        self._stopped: Future[None] = Future()
        self._lock = threading.Lock()

    def handler(self, kind: str, *, queue: Optional[str] = None, priority: Optional[int] = None, retry: Optional[str] = None,
                timeout: Optional[Duration] = None, max_losses: Optional[int] = None) -> Callable[[F], F]:
        """Decorate a function, or coroutine function, that does jobs of a kind: it gets the Job, and returns the result. The
        options are defaults of the kind, unless the database has a declaration of it."""
        said = {"name": kind, "queue": queue, "priority": priority, "retry": retry, "timeout": timeout and text(timeout), "max_losses": max_losses}

        def register(f: F) -> F:
            if kind in self._handlers:
                raise ValueError(f"two handlers for {kind!r}")
            self._handlers[kind] = f
            self._card["kinds"].append({k: v for k, v in said.items() if v is not None})
            return f

        return register

    def run(self, grace: float = 30.0) -> None:
        """Work until SIGTERM, SIGINT, or stint engines drain. After the first signal jobs have so many seconds to end; the second
        signal exits at once. Raises GatewayError if the gateway refuses the worker."""
        def on_signal(n: int, _: Any) -> None:
            if self._stopping.is_set():
                os._exit(128 + n)
            threads.start(lambda: self._begin_stop(grace))  # its lock may be held by this thread

        main = threading.current_thread() is threading.main_thread()
        before = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)} if main else {}
        try:
            self.start()
            self._stopped.result()
        finally:
            for n, h in before.items():
                signal.signal(n, h)

    def start(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        """Work in threads of its own; returns at once. Async handlers run in loop, or else in one of the worker's."""
        if not self._handlers or self._loop is not None:
            raise RuntimeError("a worker starts once, and has handlers")
        self._loop = loop or asyncio.new_event_loop()
        if loop is None:
            self._spawn(self._loop.run_forever)
            self._own_loop = self._loop
        self._spawn(self._work)

    def stop(self, grace: float = 30.0) -> None:
        """Claim no more, let what runs end for so many seconds, then cancel it and hand it back. Returns when that is done."""
        self._begin_stop(grace)
        self._stopped.exception()

    async def __aenter__(self) -> Worker:
        self.start(asyncio.get_running_loop())
        return self

    async def __aexit__(self, *_: Any) -> None:
        await threads.in_thread(self.stop)

    def _spawn(self, f: Callable[[], Any]) -> None:
        """A thread for f. If that raises the worker stops: without one of its threads it would be worse than none."""
        def run() -> None:
            try:
                f()
            except Exception as err:
                self._begin_stop(0.0, err)

        threads.start(run)

    def _work(self) -> None:
        """Claim by one membership after another."""
        pause = backoff()
        while not self._stopping.is_set():
            try:
                if not self._members or not self._members[-1].claims:
                    m = Membership(self._gateways, self._card, self._free, self._begin, self._spawn)
                    self._members = [old for old in self._members if old.jobs] + [m]
                if self._members[-1].poll():
                    self._begin_stop(float("inf"))
                pause = backoff()
            except GatewayError as err:
                if not self._members and not err.temporary:
                    return self._begin_stop(0.0, err)
                log.warning("claim: %s", err)
                self._stopping.wait(next(pause))

    def _jobs(self) -> List[Job]:
        return [job for m in self._members for job in list(m.jobs.values())]

    def _free(self) -> int:
        return max(0, self._slots - sum(len(m.jobs) for m in self._members))

    def _begin(self, job: Job, ended: Callable[[Optional[str]], None]) -> None:
        """Start the handler of a job that was claimed."""
        f = self._handlers.get(job.kind)
        if f is None or self._loop is None or self._stopping.is_set():
            ended(outcome.back(job))
        elif inspect.iscoroutinefunction(f):
            asyncio.run_coroutine_threadsafe(outcome.of_async(job, f, ended), self._loop)
        else:
            threads.start(lambda: outcome.of(job, f, ended))

    def _begin_stop(self, grace: float, failure: Optional[Exception] = None) -> None:
        """Stop within grace. A later call may shorten it."""
        with self._lock:
            self._deadline = min(self._deadline, time.monotonic() + grace)
            if not self._stopping.is_set():
                self._stopping.set()
                log.info("the worker stops: %s", failure or "as told")
                threads.start(lambda: self._stop(failure))

    def _stop(self, failure: Optional[Exception]) -> None:
        for m in self._members:
            m.stop()
        while self._jobs() and time.monotonic() < self._deadline:
            time.sleep(0.02)
        for job in self._jobs():
            job._cancel("stopping")
        while self._jobs() and time.monotonic() < self._deadline + LAST_WORDS:
            time.sleep(0.02)
        for m in self._members:
            m.leave()
        if self._own_loop is not None:
            self._own_loop.call_soon_threadsafe(self._own_loop.stop)
        self._gateways.close()
        if failure is not None:
            self._stopped.set_exception(failure)
        else:
            self._stopped.set_result(None)
