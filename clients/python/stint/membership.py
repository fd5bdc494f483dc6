"""A worker's place in the roster: the jobs that it claims there, what came of them, and the heartbeats that keep them."""
import logging
import threading
import time
from typing import Any, Callable

from .errors import GatewayError, seconds, text
from .gateway import Gateways, backoff
from .job import Job
from .runs import Ended, failure

log = logging.getLogger("stint")
QUIET = 0.25  # seconds without an answer, after which a worker with no free slot asks what is to be cancelled
LARGE = 30  # results of 1 MiB each that fit in a call


class Membership:
    """One worker id. A worker whose gateway is gone joins again under a new one, and keeps the old for what still runs.

    One thread polls, one finishes, one beats. A finish carries the claim for the slots that it frees, unless a poll for some is
    under way, since a claim ends the one before: under load there are only finishes."""

    def __init__(self, gateways: Gateways, card: dict[str, Any], free: Callable[[], int],
                 begin: Callable[[Job, Ended], None], spawn: Callable[[Callable[[], None]], None]) -> None:
        self._beaten = self._heard = time.monotonic()  # when what counts as a beat was sent, and when such was answered
        said = gateways.call("POST", "/workers", card)
        self.id: str = said["worker"]
        self._time_to_live = seconds(said["time_to_live"])
        self._gateways, self._free, self._begin = gateways, free, begin
        self.jobs: dict[str, Job] = {}  # by receipt, until their end is recorded
        self.claims = True  # false when it stops, or its gateway is gone: what runs may end, by another
        self._lost, self._polled = False, 0  # nothing that runs counts any more; for how many jobs the poll asks that is under way
        self._ended: list[tuple[Job, str | None]] = []
        self._cond, self._beating, self._left = threading.Condition(), threading.Lock(), threading.Event()
        spawn(self._finish)
        spawn(self._beats)
        log.info("joined as %s at %s", self.id, gateways.current.url)

    def poll(self) -> bool:
        """Claim jobs for the free slots, and report whether the worker is to claim no more."""
        with self._cond:
            self._cond.wait_for(lambda: not self.claims or self._free() > 0, max(0.0, self._heard + QUIET - time.monotonic()))
            if not self.claims:
                return False
            self._polled, sent = self._free(), time.monotonic()
        answer = self._call("claim", {"max": self._polled, "wait": "25s", "idle": not self.jobs}, 35)
        self._hear(answer, sent)
        self._polled = 0
        return bool(answer["drain"])

    def stop(self) -> None:
        """Claim no more. The beat has the gateway end the poll."""
        if self.claims:
            self._beat(over=True)
            self.claims = False

    def leave(self) -> None:
        """Leave the roster. What still runs is handed back."""
        self._left.set()
        try:
            self._gateways.call("DELETE", f"/workers/{self.id}", timeout=5)
        except GatewayError as err:
            log.info("leave: %s", err)

    def _call(self, what: str, body: Any, timeout: float = 15.0) -> Any:
        """Ask the gateway, and heed what it says of this place."""
        try:
            return self._step(what, body, timeout)
        except GatewayError as err:
            self.claims = self.claims and err.status != 404
            if err.status == 410 and not self._left.is_set():
                self._lose("the worker was buried or has left")
            raise

    def _step(self, what: str, body: Any, timeout: float = 15.0) -> Any:
        return self._gateways.call("POST", f"/workers/{self.id}/{what}", body, timeout)  # a 410 is about this run

    def _hear(self, answer: dict[str, Any], sent: float) -> None:
        late = time.monotonic() - sent > 0.625 * self._time_to_live  # this process stood still: others may have these jobs
        for said in [] if late else answer["jobs"]:
            job = self.jobs[said["receipt"]] = Job(said, self._step)
            self._begin(job, self._end)
        for c in (c for c in answer["cancel"] if c["receipt"] in self.jobs):
            self.jobs[c["receipt"]]._cancel(c["reason"])
        self._beaten = max(self._beaten, sent - self._time_to_live / 4)  # a claim is passed on that seldom
        self._heard = time.monotonic() if self.claims else self._heard

    def _end(self, job: Job, item: str | None) -> None:
        with self._cond:
            self._ended.append((job, item))
            self._cond.notify_all()

    def _finish(self) -> None:
        pause = backoff()
        while not self._left.is_set():
            with self._cond:
                self._cond.wait_for(lambda: bool(self._ended), 1)
                n = LARGE if sum(len(item or "") for _, item in self._ended) > LARGE << 20 else len(self._ended)
                batch, self._ended = self._ended[:n], self._ended[n:]
            try:
                if batch:
                    self._send(batch)
                elif not self.claims and not self.jobs:
                    self.leave()
                pause = backoff()
            except GatewayError as err:
                log.warning("finish: %s", err)
                with self._cond:
                    self._ended = batch + self._ended
                self._left.wait(next(pause))

    def _send(self, batch: list[tuple[Job, str | None]]) -> None:
        told = [(job, item) for job, item in batch if item is not None and not self._lost]
        if any(job._lines or job._progress for job, _ in told):
            self._beat()
        n = self._free() + len(batch) if self.claims and not self._polled else 0
        body = '{"results":[' + ",".join(item for _, item in told) + "]" + (f',"claim":{{"max":{n},"wait":"0s"}}' if n else "") + "}"
        sent = time.monotonic()
        try:
            answer = self._call("finish", body) if told or n else {"results": []}
        except GatewayError as err:
            if err.temporary or err.status in (401, 403, 404, 410):
                raise
            n, answer = 0, {"results": [{"status": "invalid", "problem": str(err)}] * len(told)}
        for (job, _), said in zip(told, answer["results"]):
            if said["status"] == "invalid" and not job._refused:  # else an error is not accepted either
                job._refused = True
                batch = [(j, item) for j, item in batch if j is not job]
                self._end(job, failure(job, f"what came of it is refused: {said['problem']}", "ValueError"))
        with self._cond:
            for job, _ in batch:
                self.jobs.pop(job._receipt, None)
            self._cond.notify_all()
        if n:
            self._hear(answer, sent)

    def _beats(self) -> None:
        ok, every = True, self._time_to_live / 4
        while not self._left.wait(every if ok else min(every, 1.0)) and not self._lost:
            ok = not self.jobs or self._beat()

    def _beat(self, over: bool = False) -> bool:
        """Say what runs. Lose it if that does not succeed for so long that others may begin to run it."""
        with self._beating:
            news = [(job, job._news()) for job in list(self.jobs.values())]
            sent, fence = time.monotonic(), self._beaten + 0.75 * self._time_to_live
            body: dict[str, Any] = {"running": [n for _, n in news]}
            if over or not self.claims:
                body["moved_for"] = text(max(0.001, sent - self._heard))
            try:
                said = self._call("beat", body, max(0.5, min(self._time_to_live / 4, fence - sent)))
                self._hear(said, sent + self._time_to_live / 4)  # it is passed on at once
            except GatewayError as err:
                log.log(logging.WARNING if self.jobs else logging.INFO, "beat: %s", err)
                if time.monotonic() > fence:
                    self._lose("no beat succeeded for too long")
                if err.temporary or err.status < 405:
                    return False  # else what it says of the jobs is refused: forget that
            for job, n in news:
                job._told(n)
            return True

    def _lose(self, why: str) -> None:
        if not self._lost:
            self._lost, self.claims = True, False
            for job in list(self.jobs.values()):
                log.warning("%s: job %d is lost", why, job.id)
                job._cancel("lost")
