"""What becomes of a run: an item of a finish call, as JSON, or None if nothing is to be sent."""
from __future__ import annotations

import asyncio
import json
import traceback
from typing import Any, Callable, Optional

from .errors import Cancel, Cancelled, NoRetry, Snooze
from .job import Job

LARGEST = 1 << 20  # characters of a result


def of(job: Job, f: Callable[[Job], Any], ended: Callable[[Optional[str]], None]) -> None:
    """Run a handler, and pass on what comes of it."""
    try:
        item = returned(job, f(job))
    except BaseException as err:
        item = raised(job, err)
    ended(item)


async def of_async(job: Job, f: Callable[[Job], Any], ended: Callable[[Optional[str]], None]) -> None:
    """of for a coroutine function, whose task is cancelled with the job."""
    task: Any = asyncio.current_task()
    job._on_cancel(lambda: task.get_loop().call_soon_threadsafe(task.cancel))
    try:
        item = returned(job, await f(job))
    except BaseException as err:
        item = raised(job, err)
    job._on_cancel(None)
    ended(item)


def returned(job: Job, value: Any) -> Optional[str]:
    if job._suspended:
        return back(job) if job._comes_back else None
    try:
        item = _item(job, result=value)
    except (TypeError, ValueError, RecursionError) as err:
        return failure(job, f"the result is not JSON: {err}", type(err).__name__, retry=False)
    return item if len(item) < LARGEST else failure(job, f"the result is larger than 1 MiB: it has {len(item):,} bytes", "ValueError", retry=False)


def raised(job: Job, err: BaseException) -> Optional[str]:
    if job._suspended:
        return back(job) if job._comes_back else None
    if isinstance(err, Snooze):
        return _item(job, snooze=err.delay)
    if isinstance(err, Cancel):
        return _item(job, cancel=str(err) or "by its handler")
    if job.cancelled.is_set() and isinstance(err, (Cancelled, asyncio.CancelledError)):
        if job.cancel_reason == "timeout":
            return failure(job, f"it took longer than {job.timeout:g} s", "TimeoutError")
        return _item(job, cancel="cancelled while it ran") if job.cancel_reason == "cancelled" else back(job)
    cause = err.__cause__ if isinstance(err, NoRetry) and err.__cause__ else err
    cls = type(cause)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    frames = err.__traceback__ and err.__traceback__.tb_next  # without our own
    return failure(job, str(err) or str(cause) or name, name, "".join(traceback.format_exception(type(err), err, frames)), not isinstance(err, NoRetry))


def failure(job: Job, message: str, cls: str, stack: str = "", retry: bool = True) -> str:
    return _item(job, error={"message": message, "class": cls, "stack": stack[-16384:], "retry": retry})


def back(job: Job) -> str:
    """Hand the job back: another worker runs it."""
    return _item(job, **{"return": True})


def _item(job: Job, **how: Any) -> str:
    return json.dumps({"receipt": job._receipt, **how}, allow_nan=False)
