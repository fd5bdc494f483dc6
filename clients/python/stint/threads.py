"""Threads for handlers: started as needed, kept for the next, and never in the way of an exit."""
from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Callable

_work: SimpleQueue[Callable[[], None]] = SimpleQueue()
_idle = threading.Semaphore(0)


def start(f: Callable[[], None]) -> None:
    """Call f, which must not raise, in a thread that is idle or new."""
    _work.put(f)
    if not _idle.acquire(blocking=False):
        threading.Thread(target=_run, name="stint", daemon=True).start()


async def in_thread(f: Callable[..., Any], *args: Any) -> Any:
    """Await f in a thread. Who is cancelled meanwhile does not stop it."""
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(f(*args))
        except BaseException as err:
            done.set_exception(err)

    start(run)
    return await asyncio.wrap_future(done)


def _run() -> None:
    while True:
        _work.get()()
        _idle.release()
