"""The job that a handler gets."""
from __future__ import annotations

import json
import math
import threading
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Deque, Dict, List, Optional, TypeVar

from .durations import Duration, parse_instant, text
from .errors import Cancelled, GatewayError, NoRetry, NoSignal, Returned, Suspended

if TYPE_CHECKING:
    from .roster import Member

T = TypeVar("T")


class Job:
    """A run of a job. Its methods may be called from any thread until the handler returns."""

    def __init__(self, said: Dict[str, Any], member: "Member", call: Callable[..., Any], threads: Any) -> None:
        self.id: int = said["id"]
        self.kind: str = said["kind"]
        self.queue: str = said["queue"]
        self.args: Any = said.get("args")
        self.attempt: int = said.get("attempt", 1)
        self.tags: List[str] = said.get("tags") or []
        self.metadata: Dict[str, Any] = said.get("metadata") or {}
        self.correlation: str = said.get("correlation") or ""
        self.may_have_run: bool = said.get("may_have_run", False)  # an earlier run was lost, and may have done its work
        self.created = parse_instant(said["created"])
        self.timeout: Optional[timedelta] = timedelta(microseconds=said["timeout"] / 1000) if said.get("timeout") else None
        self.cancelled = threading.Event()
        self.cancel_reason = ""  # cancelled, timeout, stopping or lost
        self._receipt: str = said["receipt"]
        self._steps: Dict[str, Any] = said.get("steps") or {}
        self._member, self._call, self._threads = member, call, threads
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._when_cancelled: Optional[Callable[[], Any]] = None
        self._suspended = False
        self._progress: Optional[Dict[str, Any]] = None
        self._lines: Deque[str] = deque(maxlen=1000)

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.kind}, attempt {self.attempt}>"

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the run is to end: the job was cancelled, takes too long or was lost, or the worker stops."""
        if self.cancelled.is_set():
            raise Cancelled(self.cancel_reason)

    def progress(self, fraction: float, text: str = "") -> None:
        """Say how far the job is, from 0 to 1. People see it with the next beat; the last call counts."""
        fraction = float(fraction)
        said = {"fraction": 0.0 if math.isnan(fraction) else min(1.0, max(0.0, fraction)), "text": str(text)}
        with self._lock:
            self._progress = said

    def log(self, line: str) -> None:
        """Log a line that people see with the job. Of more than 1000 between two beats the first are left out."""
        with self._lock:
            self._lines.append(str(line))

    def step(self, name: str, f: Callable[[], T]) -> T:
        """What f returned when this step was done first, in this run or an earlier one. The value is stored as JSON."""
        if self._is_done(name):
            return self._steps[name]  # type: ignore[no-any-return]
        return self._record(name, f())

    async def step_async(self, name: str, f: Callable[[], Awaitable[T]]) -> T:
        """step for a coroutine function."""
        if self._is_done(name):
            return self._steps[name]  # type: ignore[no-any-return]
        return await self._threads.call(self._record, name, await f())  # type: ignore[no-any-return]

    def sleep(self, name: str, duration: Duration) -> None:
        """Go on when the time is over, which counts from the first run that comes here. A long sleep ends the run and holds
        no slot; the handler begins again from its top when the time has come."""
        self._take_name(name)
        self._ask("sleep", {"name": name, "for": text(duration)})

    async def sleep_async(self, name: str, duration: Duration) -> None:
        await self._threads.call(self.sleep, name, duration)

    def await_signal(self, name: str, timeout: Duration = "24h", signal: Optional[str] = None) -> Any:
        """The value of the next signal of that name, or NoSignal after timeout. Waits as sleep does. In a loop give each
        wait a name of its own, and the name of the signal as signal."""
        self._take_name(name)
        answer = self._ask("await", {"name": name, "signal": signal or name, "timeout": text(timeout)})
        if answer.get("timed_out"):
            raise NoSignal(f"no signal {signal or name!r} came in {timeout}")
        return answer.get("value")

    async def await_signal_async(self, name: str, timeout: Duration = "24h", signal: Optional[str] = None) -> Any:
        return await self._threads.call(self.await_signal, name, timeout, signal)

    def _take_name(self, name: str) -> None:
        with self._lock:
            if self._suspended:
                raise Suspended(self.id)
            if name in self._names:
                raise NoRetry(f"two steps of this run have the name {name!r}")
            self._names.add(name)

    def _is_done(self, name: str) -> bool:
        self._take_name(name)
        return name in self._steps

    def _record(self, name: str, value: T) -> T:
        json.dumps(value, allow_nan=False)  # raises here rather than as an error of the gateway
        return self._ask("step", {"name": name, "value": value})["value"]  # type: ignore[no-any-return]

    def _ask(self, what: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """Ask for a step, a sleep or a wait; again while the gateway is away and the run counts."""
        body["receipt"] = self._receipt
        pause = self._member.backoff()
        while not self._member.lost and not self._suspended:
            try:
                answer: Dict[str, Any] = self._call("POST", f"/workers/{self._member.id}/{what}", body)
                if not answer.get("suspended"):
                    return answer
                self._suspended = True
            except GatewayError as err:
                if err.type.endswith(":suspended"):  # by a sleep in another thread
                    self._suspended = True
                elif err.status == 404:
                    self._member.gone()
                    raise Returned(self.id) from err
                elif err.status == 410:
                    self._cancel("lost")
                    raise Cancelled("lost") from err
                elif not err.temporary:
                    raise
                elif self.cancelled.wait(pause.next()):
                    raise Cancelled(self.cancel_reason) from err
        if self._suspended:
            raise Suspended(self.id)
        raise Cancelled("lost")

    def _cancel(self, reason: str) -> None:
        with self._lock:
            if self.cancelled.is_set() and reason != "lost":
                return
            self.cancel_reason = reason
            self.cancelled.set()
            call = self._when_cancelled
        if call is not None:
            call()

    def _on_cancel(self, call: Optional[Callable[[], Any]]) -> None:
        with self._lock:
            self._when_cancelled = call
            now = self.cancelled.is_set()
        if call is not None and now:
            call()

    def _take_said(self) -> Dict[str, Any]:
        """What a beat brings of this job."""
        said: Dict[str, Any] = {"receipt": self._receipt}
        if self._lines or self._progress:
            with self._lock:
                if self._progress:
                    said["progress"], self._progress = self._progress, None
                if self._lines:
                    said["log"] = list(self._lines)
                    self._lines.clear()
        return said

    def _give_back_said(self, said: Dict[str, Any]) -> None:
        with self._lock:
            self._progress = self._progress or said.get("progress")
            for line in reversed(said.get("log", ())):
                if len(self._lines) < 1000:
                    self._lines.appendleft(line)
