"""A worker's place in the roster: the jobs that it claims there, what came of them, and the heartbeats that keep them."""
from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from .errors import GatewayError, text
from .gateway import Gateways, backoff
from .job import Job
from .outcome import failure

log = logging.getLogger("stint")
WAIT = 25  # seconds of a long poll
QUIET = 0.25  # seconds without an answer, after which a worker with no free slot asks what is to be cancelled
BATCH = 30  # results in a call: each has 1 MiB at most, and a call 32


class Membership:
    """One worker id. A worker whose gateway is gone joins again under a new one, and keeps the old for what still runs.

    One thread polls, one finishes, one beats; none runs anything of the program's. A finish carries the claim for the slots that
    it frees, unless a poll for some is under way, since a claim ends the one before: under load there are only finishes."""

    def __init__(self, gateways: Gateways, card: Dict[str, Any], free: Callable[[], int],
                 begin: Callable[[Job, Callable[[Optional[str]], None]], None], spawn: Callable[[Callable[[], None]], None]) -> None:
        self._beaten = self._claimed = time.monotonic()  # when what counts as a beat was sent, and when a claim was answered
        said = gateways.call("POST", "/workers", card)
        self.id: str = said["worker"]
        self._time_to_live = said["time_to_live"] / 1e9
        self._gateways, self._free, self._begin = gateways, free, begin
        self.jobs: Dict[str, Job] = {}  # by receipt, until their end is recorded
        self.moved = False  # its gateway does not know it any more: what runs may end, by another
        self.lost = False  # nothing that runs counts any more
        self._polled = 0  # for how many jobs the poll asks that is under way
        self._ended: List[Tuple[Job, Optional[str]]] = []
        self._stopping = False
        self._cond = threading.Condition()
        self._beating = threading.Lock()
        self._left = threading.Event()
        spawn(self._finish)
        spawn(self._beats)
        log.info("joined as %s at %s", self.id, gateways.current)

    @property
    def claims(self) -> bool:
        return not (self._stopping or self.moved or self.lost)

    def poll(self) -> bool:
        """Claim jobs for the free slots, and report whether the worker is to claim no more."""
        with self._cond:
            self._cond.wait_for(lambda: not self.claims or self._free() > 0, max(0.0, self._claimed + QUIET - time.monotonic()))
            if not self.claims:
                return False
            self._polled, sent = self._free(), time.monotonic()
        try:
            answer = self._call("claim", {"max": self._polled, "wait": f"{WAIT}s"}, WAIT + 10)
            self._receive(answer, sent)
        finally:
            self._polled = 0
        return bool(answer.get("drain"))

    def stop(self) -> None:
        """Claim no more. The place is left when nothing runs any more."""
        with self._cond:
            self._stopping = True
            self._cond.notify_all()
        try:
            self._call("claim", {"max": 0, "wait": "0s"}, 5)  # ends the poll
        except GatewayError as err:
            log.info("end the poll: %s", err)

    def leave(self) -> None:
        """Leave the roster. What still runs is handed back."""
        if not self._left.is_set() and not self.lost:
            try:
                self._gateways.call("DELETE", f"/workers/{self.id}", timeout=5)
            except GatewayError as err:
                log.info("leave: %s", err)
        self._left.set()

    def _call(self, what: str, body: Any, timeout: float = 15.0) -> Dict[str, Any]:
        """Ask the gateway, and heed what it says of this place."""
        try:
            answer: Dict[str, Any] = self._gateways.call("POST", f"/workers/{self.id}/{what}", body, timeout)
            return answer
        except GatewayError as err:
            self.moved = self.moved or err.status == 404
            if err.status == 410:
                self._lose("the worker was buried or has left")
            raise

    def _receive(self, answer: Dict[str, Any], sent: float) -> None:
        """Take the answer to a claim."""
        for said in answer.get("jobs") or ():
            job = self.jobs[said["receipt"]] = Job(said, self._call)
            self._begin(job, partial(self._end, job))
        self._claimed = time.monotonic()
        self._hear(answer, sent)

    def _hear(self, answer: Dict[str, Any], sent: float) -> None:
        self._beaten = max(self._beaten, sent)
        for c in answer.get("cancel") or ():
            if c["receipt"] in self.jobs:
                self.jobs[c["receipt"]]._cancel(c["reason"])

    def _end(self, job: Job, item: Optional[str]) -> None:
        with self._cond:
            self._ended.append((job, item))
            self._cond.notify_all()

    def _finish(self) -> None:
        pause = backoff()
        while not self._left.is_set():
            with self._cond:
                if not self._cond.wait_for(lambda: self._ended or not self.claims and not self.jobs, 1):
                    continue
                batch, self._ended = self._ended[:BATCH], self._ended[BATCH:]
            if not batch:
                return self.leave()
            try:
                self._send(batch)
                pause = backoff()
            except GatewayError as err:
                log.warning("finish: %s", err)
                with self._cond:
                    self._ended = batch + self._ended
                self._left.wait(next(pause))

    def _send(self, batch: List[Tuple[Job, Optional[str]]]) -> None:
        told = [(job, item) for job, item in batch if item is not None and job.cancel_reason != "lost"]
        if any(job._lines or job._progress for job, _ in told):
            self._beat()
        n = self._free() + len(batch) if self.claims and not self._polled else 0
        sent = time.monotonic()
        body = '{"results":[' + ",".join(item for _, item in told) + "]" + (f',"claim":{{"max":{n},"wait":"0s"}}' if n else "") + "}"
        try:
            answer = self._call("finish", body) if told or n else {}
        except GatewayError as err:
            if err.temporary or err.status in (401, 403, 404, 410):
                raise
            answer = {"results": [{"status": "invalid", "problem": str(err)}] * len(told)}
        again = [job for (job, _), said in zip(told, answer.get("results", ())) if self._is_refused(job, said)]
        with self._cond:
            for job, _ in batch:
                if job not in again:
                    self.jobs.pop(job._receipt, None)
            self._cond.notify_all()
        if n:
            self._receive(answer, sent)

    def _is_refused(self, job: Job, said: Dict[str, Any]) -> bool:
        """Whether what came of a job is not accepted. Then an error is sent instead, once."""
        if said["status"] != "invalid" or job._refused:
            return False
        job._refused = True
        log.error("job %d: what came of it is refused: %s", job.id, said.get("problem"))
        self._end(job, failure(job, f"what came of it is refused: {said.get('problem')}", "ValueError", retry=False))
        return True

    def _beats(self) -> None:
        """Beat while jobs run; else the claims say that the worker lives."""
        pause, ok, every = backoff(), True, self._time_to_live / 4
        while not self._left.wait(every if ok else min(every, next(pause))) and not self.lost:
            ok = not self.jobs or self._beat()
            if ok:
                pause = backoff()

    def _beat(self) -> bool:
        """Say what runs. Lose it if that does not succeed for so long that others may begin to run it."""
        with self._beating:
            news = [(job, job._news()) for job in list(self.jobs.values())]
            sent, fence = time.monotonic(), self._beaten + 0.75 * self._time_to_live
            body: Dict[str, Any] = {"running": [n for _, n in news]}
            if self.moved:
                body["moved_for"] = text(sent - self._claimed)
            try:
                self._hear(self._call("beat", body, max(0.5, min(self._time_to_live / 4, fence - sent))), sent)
            except GatewayError as err:
                log.warning("beat: %s", err)
                if time.monotonic() > fence:
                    self._lose("no beat succeeded for too long")
                if err.temporary or err.status < 405:
                    return False  # else what it says of the jobs is refused: forget that
            for job, n in news:
                job._told(n)
            return True

    def _lose(self, why: str) -> None:
        with self._cond:
            already, self.lost = self.lost, True
            self._cond.notify_all()
        if not already:
            log.warning("%s: %d running jobs are lost", why, len(self.jobs))
            for job in list(self.jobs.values()):
                job._cancel("lost")
