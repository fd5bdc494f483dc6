"""The job that a handler gets."""
import asyncio
import json
import math
import threading
from typing import Any, Awaitable, Callable, TypeVar, cast

from .errors import Cancelled, Duration, GatewayError, NoRetry, NoSignal, Suspended, seconds, text
from .gateway import backoff

T = TypeVar("T")


class Job:
    """A run of a job. Its methods may be called from any thread until the handler returns."""

    def __init__(self, said: dict[str, Any], call: Callable[[str, str], dict[str, Any]]) -> None:
        self.id: int = said["id"]
        self.kind: str = said["kind"]
        self.queue: str = said["queue"]
        self.args: Any = said.get("args")
        self.attempt: int = said["attempt"]
        self.tags: list[str] = said.get("tags") or []
        self.metadata: dict[str, Any] = said.get("metadata") or {}
        self.correlation: str = said.get("correlation", "")
        self.created: str = said["created"]  # RFC 3339
        self.timeout: float = seconds(said.get("timeout", ""))  # seconds that the run may take; 0: as long as it likes
        self.may_have_run: bool = said.get("may_have_run", False)  # an earlier run was lost, and may have done its work
        self.cancelled = threading.Event()
        self.cancel_reason = ""  # cancelled, timeout, stopping or lost
        self._receipt: str = said["receipt"]
        self._steps: dict[str, Any] = said.get("steps") or {}
        self._call, self._lock = call, threading.RLock()
        self._names: set[str] = set()
        self._when_cancelled: Callable[[], Any] = lambda: None
        self._suspended = self._refused = False  # the run is over for the gateway; what came of it was not accepted
        self._progress: dict[str, Any] | None = None
        self._lines: list[str] = []

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the run is to end: the job was cancelled, takes too long or was lost, or the worker stops."""
        if self.cancelled.is_set():
            raise Cancelled(self.cancel_reason)

    def progress(self, fraction: float, text: str = "") -> None:
        """Say how far the job is, from 0 to 1. People see it with the next beat; the last call counts."""
        self._progress = {"fraction": 0.0 if math.isnan(fraction) else min(1.0, max(0.0, fraction)), "text": str(text)}

    def log(self, line: str) -> None:
        """Log a line that people see with the job. Of more than 1000 between two beats the first are left out."""
        with self._lock:
            self._lines = [*self._lines[-999:], str(line)]

    def step(self, name: str, f: Callable[[], T]) -> T:
        """What f returned when this step was done first, in this run or an earlier one. The value is stored as JSON."""
        if self._is_new(name):
            self._steps[name] = self._ask("step", name, value=f())["value"]
        return cast(T, self._steps[name])

    async def step_async(self, name: str, f: Callable[[], Awaitable[T]]) -> T:
        """step for a coroutine function."""
        if self._is_new(name):
            self._steps[name] = (await asyncio.to_thread(self._ask, "step", name, value=await f()))["value"]
        return cast(T, self._steps[name])

    def sleep(self, name: str, duration: Duration) -> None:
        """Go on when the time is over. A long sleep ends the run; then the handler begins again from its top."""
        self._is_new(name)
        self._ask("sleep", name, **{"for": text(duration)})

    async def sleep_async(self, name: str, duration: Duration) -> None:
        await asyncio.to_thread(self.sleep, name, duration)

    def await_signal(self, name: str, timeout: Duration = "24h", signal: str | None = None) -> Any:
        """The next signal's value, or NoSignal after timeout. It ends the run as a long sleep does. signal is name unless given."""
        self._is_new(name)
        answer = self._ask("await", name, signal=signal or name, timeout=text(timeout))
        if answer.get("timed_out"):
            raise NoSignal(f"no signal {signal or name!r} came in {timeout}")
        return answer.get("value")

    async def await_signal_async(self, name: str, timeout: Duration = "24h", signal: str | None = None) -> Any:
        return await asyncio.to_thread(self.await_signal, name, timeout, signal)

    def _is_new(self, name: str) -> bool:
        """Take a name, and report whether no earlier run has recorded the step."""
        with self._lock:
            if self._suspended:
                raise Suspended(self.id)
            if name in self._names:
                raise NoRetry(f"two steps of this run have the name {name!r}")
            self._names.add(name)
        return name not in self._steps

    def _ask(self, what: str, name: str, **more: Any) -> dict[str, Any]:
        """Ask for a step, a sleep or a wait; again while the gateway is away and the run counts."""
        request = json.dumps({"receipt": self._receipt, "name": name, **more}, allow_nan=False)
        for pause in backoff():
            try:
                answer = self._call(what, request)
                self._suspended = bool(answer.get("suspended"))
                if not self._suspended:
                    return answer
            except GatewayError as err:
                if err.status in (404, 410):  # 404: the gateway is gone, so begin again, by another, with what is recorded
                    self._cancel("stopping" if err.status == 404 else "lost")
                elif not err.temporary and err.status != 409:
                    raise
                self._suspended = err.status == 409  # by a sleep in another thread
            if self._suspended or self.cancelled.wait(pause):
                break
        raise Suspended(self.id)

    def _cancel(self, reason: str) -> None:
        with self._lock:
            if not self.cancelled.is_set() or reason == "lost":
                self.cancel_reason = reason
                self.cancelled.set()
                self._when_cancelled()

    def _on_cancel(self, call: Callable[[], Any]) -> None:
        with self._lock:
            self._when_cancelled = call
            if self.cancelled.is_set():
                call()

    def _news(self) -> dict[str, Any]:
        """What a beat brings of this job."""
        return {k: v for k, v in (("receipt", self._receipt), ("progress", self._progress), ("log", self._lines)) if v}

    def _told(self, news: dict[str, Any]) -> None:
        """Forget what a beat brought."""
        with self._lock:
            self._lines = self._lines[len(news.get("log", ())):]
            self._progress = None if self._progress is news.get("progress") else self._progress
