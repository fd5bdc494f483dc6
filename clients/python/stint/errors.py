"""What handlers raise, and what callers get; and durations."""
import re
from datetime import timedelta
from typing import Any

Duration = str | timedelta | float  # a text such as "250ms", "1m30s" or "14d"; a timedelta; or a number of seconds


def text(d: Duration) -> str:
    """d as the gateway and PostgreSQL read it. They refuse a text that is no duration."""
    return d if isinstance(d, str) else f"{d.total_seconds() if isinstance(d, timedelta) else d:.6f}s"


_SECONDS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def seconds(text: str) -> float:
    """A duration as the gateway writes it, such as "1m30s"."""
    return sum(float(n) * _SECONDS[unit] for n, unit in re.findall(r"([\d.]+)([a-z]+)", text))


class NoRetry(Exception):
    """Raise it to fail the job for good: `raise NoRetry("no such customer") from err`."""


class Snooze(Exception):
    """Raise it to run the job again later, without counting this attempt."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(text(delay))


class Cancel(Exception):
    """Raise it to cancel the job, and say why."""


class Cancelled(Exception):
    """Raised by job.raise_if_cancelled(). Let it pass: the reason decides what becomes of the job."""


class NoSignal(Exception):
    """The time of job.await_signal is over, and no signal came."""


class Suspended(BaseException):
    """Ends a run that sleeps or waits. Let it pass, as you would a KeyboardInterrupt: the job goes on later."""


class JobFailed(Exception):
    """A job ended without a result. `state` is failed or cancelled; `error` has class, message and stack, if known."""

    def __init__(self, job: int, state: str, error: dict[str, Any], reason: str) -> None:
        super().__init__(f"job {job} {'was' if state == 'cancelled' else 'has'} {state}: {error.get('message') or reason}")
        self.job, self.state, self.error, self.reason = job, state, error, reason


class GatewayError(Exception):
    """A call to the gateway failed. `status` is that of HTTP, or 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.temporary = status in (0, 408, 429) or status >= 500  # the same call may succeed later
