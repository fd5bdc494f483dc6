"""What becomes of a run: an item of a finish call, as JSON, or None if nothing is to be sent."""
from __future__ import annotations

import asyncio
import json
import traceback
from typing import Any, Dict, Optional, Type

from .errors import Cancel, Cancelled, NoRetry, Returned, Snooze
from .job import Job


def returned(job: Job, value: Any) -> Optional[str]:
    """Of a handler that returned."""
    if job._suspended:
        return None
    try:
        return _item(job, {"result": value})
    except (TypeError, ValueError) as err:
        return raised(job, NoRetry(f"the result is not JSON: {err}"))


def raised(job: Job, err: BaseException) -> Optional[str]:
    """Of a handler that raised."""
    if job._suspended:
        return None
    if _is_only(err, Returned):
        return back(job)
    if isinstance(err, Snooze):
        return _item(job, {"snooze": err.delay})
    if isinstance(err, Cancel):
        return _item(job, {"cancel": str(err)})
    if job.cancelled.is_set() and isinstance(err, (Cancelled, asyncio.CancelledError)):
        if job.cancel_reason in ("stopping", "lost"):
            return back(job)
        if job.cancel_reason == "cancelled":
            return _item(job, {"cancel": "cancelled while it ran"})
        return failure(job, f"it took longer than {job.timeout or 'its timeout'}", "TimeoutError")
    cause = err.__cause__ if isinstance(err, NoRetry) and err.__cause__ else err
    tb = err.__traceback__
    stack = "".join(traceback.format_exception(type(err), err, tb and tb.tb_next))  # without our own frame
    return failure(job, str(err) or str(cause) or type(cause).__name__, _name(type(cause)), stack, not isinstance(err, NoRetry))


def failure(job: Job, message: str, cls: str, stack: str = "", retry: bool = True) -> str:
    error: Dict[str, Any] = {"message": message, "class": cls}
    if stack:
        error["stack"] = stack[-16384:]
    if not retry:
        error["retry"] = False
    return _item(job, {"error": error})


def back(job: Job) -> str:
    """Hand the job back: another worker runs it."""
    return _item(job, {"return": True})


def _item(job: Job, what: Dict[str, Any]) -> str:
    return json.dumps({"receipt": job._receipt, **what}, allow_nan=False)


def _name(cls: Type[BaseException]) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _is_only(err: BaseException, cls: Type[BaseException]) -> bool:
    """Whether err is one of cls, or a group of such, as task groups raise."""
    inner = getattr(err, "exceptions", ())
    return isinstance(err, cls) or bool(inner) and all(_is_only(e, cls) for e in inner)
