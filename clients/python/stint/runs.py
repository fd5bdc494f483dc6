"""How handlers run, in threads or a loop, and what comes of them: an item of a finish call, or None if nothing is to be sent."""
import asyncio
import json
import threading
import traceback
from queue import SimpleQueue
from typing import Any, Callable

from .errors import Cancel, Cancelled, NoRetry, Snooze, Suspended
from .job import Job

Ended = Callable[[Job, str | None], None]  # takes what came of a job
_work: SimpleQueue[Callable[[], None]] = SimpleQueue()
_idle = threading.Semaphore(0)


def in_thread(f: Callable[[], None]) -> None:
    """Call f, which must not raise, in a thread that is idle or new. Such threads are never in the way of an exit."""
    _work.put(f)
    if not _idle.acquire(blocking=False):
        threading.Thread(target=_loop, name="stint", daemon=True).start()


def _loop() -> None:
    while True:
        _work.get()()
        _idle.release()


def run(job: Job, f: Callable[[Job], Any], ended: Ended) -> None:
    """Run a handler, and pass on what comes of it."""
    try:
        item = _returned(job, f(job))
    except BaseException as err:
        item = _raised(job, err)
    ended(job, None if job._suspended else item)


async def run_async(job: Job, f: Callable[[Job], Any], ended: Ended) -> None:
    """run for a coroutine function, whose task is cancelled with the job."""
    task: Any = asyncio.current_task()
    job._on_cancel(lambda: task.get_loop().call_soon_threadsafe(task.cancel))
    try:
        item = _returned(job, await f(job))
    except BaseException as err:
        item = _raised(job, err)
    ended(job, None if job._suspended else item)


def _returned(job: Job, value: Any) -> str:
    try:
        item = _item(job, result=value)
    except (TypeError, ValueError, RecursionError) as err:
        return failure(job, f"the result is not JSON: {err}", type(err).__name__)
    return item if len(item) < 1 << 20 else failure(job, f"the result has {len(item):,} bytes as JSON; 1 MiB is allowed", "ValueError")


def _raised(job: Job, err: BaseException) -> str:
    if isinstance(err, Snooze):
        return _item(job, snooze=str(err))
    if isinstance(err, Cancel):
        return _item(job, cancel=str(err) or "by its handler")
    if job.cancelled.is_set() and isinstance(err, (Cancelled, asyncio.CancelledError, Suspended)):
        if job.cancel_reason == "timeout":
            return failure(job, f"it took longer than {job.timeout:g} s", "TimeoutError", retry=True)
        return _item(job, cancel="cancelled while it ran") if job.cancel_reason == "cancelled" else back(job)
    cause = err.__cause__ if isinstance(err, NoRetry) and err.__cause__ else err
    cls = type(cause)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    stack = "".join(traceback.format_exception(type(err), err, err.__traceback__ and err.__traceback__.tb_next))  # without our frame
    return failure(job, str(err) or str(cause) or name, name, stack, not isinstance(err, NoRetry))


def failure(job: Job, message: str, cls: str, stack: str = "", retry: bool = False) -> str:
    return _item(job, error={"message": message, "class": cls, "stack": stack[-16384:], "retry": retry})


def back(job: Job) -> str:
    """Hand the job back: another worker runs it."""
    return _item(job, **{"return": True})


def _item(job: Job, **how: Any) -> str:
    return json.dumps({"receipt": job._receipt, **how}, allow_nan=False)
