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
from typing import Any, Callable, Coroutine, Dict, List, NamedTuple, Optional, Sequence, TypeVar, Union

from . import outcome
from .claims import Claims
from .durations import Duration, seconds, text
from .gateway import Connections, Gateways
from .job import Job
from .roster import Member, Roster
from .threads import Threads

log = logging.getLogger("stint")
F = TypeVar("F", bound=Callable[..., Any])
LAST_WORDS = 5.0  # seconds that cancelled handlers have before their jobs are handed back


class Handler(NamedTuple):
    f: Callable[[Job], Any]
    is_async: bool
    kind: Dict[str, Any]


class Worker:
    """Runs jobs. gateway is one URL or several of the same database, by default STINT_GATEWAY; the token is that of the URL's
    ?token=, or STINT_TOKEN. Of queues None is all. slots is how many jobs run at once."""

    def __init__(self, gateway: Union[str, Sequence[str], None] = None, token: Optional[str] = None, *,
                 queues: Optional[Sequence[str]] = None, slots: int = 10, instance: Optional[str] = None,
                 time_to_live: Duration = "30s", version: Optional[str] = None) -> None:
        self._gateways = Gateways(gateway, token)
        self._slots = slots
        self._card: Dict[str, Any] = {"slots": slots, "time_to_live": text(time_to_live), "host": socket.gethostname(), "pid": os.getpid()}
        self._card.update({k: v for k, v in (("queues", queues and list(queues)), ("instance", instance), ("version", version)) if v})
        self._handlers: Dict[str, Handler] = {}
        self._calls = Connections(self._gateways)
        self._threads = Threads("stint handler")
        self._cond = threading.Condition()
        self._busy: Dict[int, Job] = {}  # by id of the object: what handlers run
        self._deadline: Optional[float] = None
        self._stopper: Optional[threading.Thread] = None
        self._stopped: Future[None] = Future()
        self._roster: Optional[Roster] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._own_loop = False

    def handler(self, kind: str, *, queue: Optional[str] = None, priority: Optional[int] = None, retry: Optional[str] = None,
                timeout: Optional[Duration] = None, max_losses: Optional[int] = None) -> Callable[[F], F]:
        """Decorate a function, or coroutine function, that does jobs of a kind: it gets the Job, and returns the result. The
        options are defaults of the kind, unless the database has a declaration of it."""
        given = {"name": kind, "queue": queue, "priority": priority, "retry": retry, "max_losses": max_losses,
                 "timeout": None if timeout is None else text(timeout)}

        def register(f: F) -> F:
            if kind in self._handlers:
                raise ValueError(f"two handlers for {kind!r}")
            self._handlers[kind] = Handler(f, inspect.iscoroutinefunction(f), {k: v for k, v in given.items() if v is not None})
            return f

        return register

    def run(self, grace: Duration = "30s") -> None:
        """Work until SIGTERM, SIGINT, or stint engines drain. After the first signal jobs have so long to end; the second
        signal exits at once. Raises GatewayError if the gateway refuses the worker."""
        on_signal = self._on_signal(grace)

        signals = (signal.SIGTERM, signal.SIGINT)
        before = {s: signal.signal(s, lambda n, _: on_signal(n)) for s in signals} if threading.current_thread() is threading.main_thread() else {}
        try:
            self.start()
            self._stopped.result()
        finally:
            for n, h in before.items():
                signal.signal(n, h)

    def _on_signal(self, grace: Duration) -> Callable[[int], None]:
        bound = seconds(grace)
        seen: List[int] = []

        def stop(signum: int) -> None:
            if seen:
                os._exit(128 + signum)
            seen.append(signum)
            threading.Thread(target=self._begin_stop, args=(bound,), daemon=True).start()  # its lock may be held by this thread

        return stop

    def start(self) -> None:
        """Work in threads of its own; returns at once."""
        if self._roster is not None:
            raise RuntimeError("a worker starts once")
        if not self._handlers:
            raise RuntimeError("the worker has no handlers")
        self._card["kinds"] = [h.kind for h in self._handlers.values()]
        if self._loop is None and any(h.is_async for h in self._handlers.values()):
            self._loop, self._own_loop = asyncio.new_event_loop(), True
            threading.Thread(target=self._loop.run_forever, name="stint loop", daemon=True).start()
        self._roster = Roster(self._gateways, self._card, self._begin_stop)
        self._claims = Claims(self._roster, self._gateways, self._slots, self._begin, self._begin_stop)
        self._roster.start()
        self._claims.start()

    def stop(self, grace: Duration = "30s") -> None:
        """Claim no more, let what runs end for so long, then cancel it and hand it back. Returns when that is done."""
        self._begin_stop(seconds(grace))
        self._stopped.exception()

    async def run_async(self, grace: Duration = "30s") -> None:
        """run for asyncio programs: async handlers run in the caller's loop."""
        loop = self._loop = asyncio.get_running_loop()
        installed: List[int] = []
        on_signal = self._on_signal(grace)
        for s in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(s, on_signal, s)
                installed.append(s)
            except (NotImplementedError, RuntimeError, ValueError):
                pass  # not the main thread, or not on this system
        try:
            self.start()
            await asyncio.shield(asyncio.wrap_future(self._stopped))
        finally:
            for n in installed:
                loop.remove_signal_handler(n)
            await self.stop_async(grace)

    async def stop_async(self, grace: Duration = "30s") -> None:
        self._begin_stop(seconds(grace))
        await asyncio.wait([asyncio.wrap_future(self._stopped)])

    async def __aenter__(self) -> "Worker":
        self._loop = asyncio.get_running_loop()
        self.start()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.stop_async()

    def _begin(self, said: Dict[str, Any], member: Member) -> None:
        """Start the handler of a job that was claimed."""
        job = Job(said, member, self._calls.call, self._threads)
        handler = self._handlers.get(job.kind)
        member.running[job._receipt] = job
        if member.lost:
            job._cancel("lost")
        if handler is None or self._deadline is not None or job.cancelled.is_set():
            return self._claims.ended(job, outcome.back(job))
        self._busy[id(job)] = job
        if handler.is_async and self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._run_async(job, handler.f), self._loop)
        else:
            self._threads.start(self._run, job, handler.f)

    def _run(self, job: Job, f: Callable[[Job], Any]) -> None:
        try:
            item = outcome.returned(job, f(job))
        except BaseException as err:
            item = outcome.raised(job, err)
        self._end(job, item)

    async def _run_async(self, job: Job, f: Callable[[Job], Coroutine[Any, Any, Any]]) -> None:
        task: Any = asyncio.current_task()
        job._on_cancel(lambda: task.get_loop().call_soon_threadsafe(task.cancel))
        try:
            item = outcome.returned(job, await f(job))
        except BaseException as err:
            item = outcome.raised(job, err)
        job._on_cancel(None)
        self._end(job, item)

    def _end(self, job: Job, item: Optional[str]) -> None:
        self._claims.ended(job, item)
        del self._busy[id(job)]
        if self._deadline is not None:
            with self._cond:
                self._cond.notify_all()

    def _begin_stop(self, grace: Optional[float], failure: Optional[Exception] = None) -> None:
        """Stop within grace, None for as long as it takes. A later call may shorten it."""
        log.info("the worker stops: %s", failure or "as told")
        deadline = float("inf") if grace is None else time.monotonic() + grace
        with self._cond:
            self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)
            self._cond.notify_all()
            if self._stopper is None:
                self._stopper = threading.Thread(target=self._stop, args=(failure,), name="stint stop", daemon=True)
                self._stopper.start()

    def _stop(self, failure: Optional[Exception]) -> None:
        if self._roster is not None:
            self._claims.stop()
            with self._cond:
                while self._busy and self._deadline is not None and self._deadline > time.monotonic():
                    self._cond.wait(min(1.0, self._deadline - time.monotonic()))
                left = list(self._busy.values())
            for job in left:
                job._cancel("stopping")
            with self._cond:
                self._cond.wait_for(lambda: not self._busy, LAST_WORDS)
            self._claims.close(10)
            self._roster.close()
        if self._loop is not None and self._own_loop:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.close()
        self._calls.close()
        if failure is not None:
            self._stopped.set_exception(failure)
        else:
            self._stopped.set_result(None)
