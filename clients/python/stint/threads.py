"""Threads for handlers: started as needed, kept for the next, and never in the way of an exit."""
from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Callable, Optional, Tuple


def guarded(loop: Callable[[], None], stop: Callable[[Optional[float], Optional[Exception]], None], name: str) -> threading.Thread:
    """A thread for loop. If that raises, stop is told: a worker without one of its threads would be worse than none."""
    def run() -> None:
        try:
            loop()
        except Exception as err:
            stop(0.0, err)

    return threading.Thread(target=run, name=name, daemon=True)


class Threads:
    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Optional[Tuple[Callable[..., None], Tuple[Any, ...]]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def start(self, f: Callable[..., None], *args: Any) -> None:
        """Call f, which must not raise, in a thread that is idle or new."""
        self._work.put((f, args))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    async def call(self, f: Callable[..., Any], *args: Any) -> Any:
        """Await f in a thread. Who is cancelled meanwhile does not stop it."""
        done: Future[Any] = Future()
        done.set_running_or_notify_cancel()

        def run() -> None:
            try:
                done.set_result(f(*args))
            except BaseException as err:
                done.set_exception(err)

        self.start(run)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        self._work.put(None)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return self._work.put(None)
            work[0](*work[1])
            del work
            self._idle.release()
