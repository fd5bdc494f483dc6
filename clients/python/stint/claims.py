"""Claims jobs for free slots, and brings home what came of them."""
from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from itertools import groupby
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional

from .errors import GatewayError
from .gateway import Backoff, Connection, Gateways
from .job import Job
from .outcome import failure
from .roster import Member, Roster
from .threads import guarded

log = logging.getLogger("stint")
WAIT = 25  # seconds of a long poll
FINISHERS = 2  # while one waits until the database has its batch, the other takes the next


class Ended(NamedTuple):
    job: Job
    item: Optional[str]  # None: nothing is to be sent
    slots: int = 1  # that it holds until its finish is answered
    refused: bool = False


class Claims:
    """Two threads: one polls, the other finishes. A finish carries the claim for the slots that it frees, unless a poll for
    some is under way: a claim ends the one before. Under load there are only finishes. Fields are guarded by _cond."""

    def __init__(self, roster: Roster, gateways: Gateways, slots: int,
                 begin: Callable[[Dict[str, Any], Member], None], stop: Callable[[Optional[float], Optional[Exception]], None]) -> None:
        self._roster, self._gateways, self._begin, self._stop_worker = roster, gateways, begin, stop
        self._cond = threading.Condition()
        self._free = slots  # neither running nor asked for
        self._polling: Optional[int] = None  # how many jobs the poll asks for that is under way
        self._heard = 0.0  # when a claim was answered last
        self._ended: Deque[Ended] = deque()
        self._stopping = self._closing = False
        self._poller = guarded(self._poll, stop, "stint polls")
        self._finishers = [guarded(self._finish, stop, "stint finishes") for _ in range(FINISHERS)]

    def start(self) -> None:
        self._poller.start()
        for t in self._finishers:
            t.start()

    def ended(self, job: Job, item: Optional[str]) -> None:
        """Take what a handler came to."""
        with self._cond:
            self._ended.append(Ended(job, item))
            self._cond.notify_all()

    def stop(self) -> None:
        """Claim no more."""
        with self._cond:
            self._stopping = True
            self._cond.notify_all()
        m = self._roster.current()
        if m is not None and self._poller.is_alive():
            try:
                Connection(self._gateways).call("POST", f"/workers/{m.id}/claim", {"max": 0, "wait": "0s"}, timeout=5)
            except GatewayError as err:
                log.info("end the poll: %s", err)
            self._poller.join(5)

    def close(self, timeout: float) -> None:
        """Send what has ended, for so long at most, and end the threads."""
        with self._cond:
            self._stopping = self._closing = True
            self._cond.notify_all()
        end = time.monotonic() + timeout
        for t in self._finishers:
            t.join(max(0.0, end - time.monotonic()))

    def _poll(self) -> None:
        conn, pause, joined = Connection(self._gateways), Backoff(), False
        while not self._stopping:
            m, n = self._roster.current(), 0
            try:
                if m is None:
                    m = self._roster.join(conn)
                    joined = True
                with self._cond:
                    self._cond.wait_for(lambda: self._free > 0 or self._stopping, max(0.0, self._heard + 0.25 - time.monotonic()))
                    if self._stopping:
                        break
                    n = self._polling = self._free
                    self._free = 0
                answer = conn.call("POST", f"/workers/{m.id}/claim", {"max": n, "wait": f"{WAIT}s"}, timeout=WAIT + 10)
                self._receive(m, answer, n)
                pause.reset()
                if answer.get("drain") and not self._stopping:
                    return self._stop_worker(None, None)
            except GatewayError as err:
                with self._cond:
                    self._free += n
                    self._polling = None
                if m is not None and self._roster.heed(m, err, True):
                    continue
                if not joined and not err.temporary:
                    return self._stop_worker(0, err)
                log.warning("claim: %s", err)
                with self._cond:
                    self._cond.wait_for(lambda: self._stopping, pause.next())
        conn.close()

    def _receive(self, m: Member, answer: Dict[str, Any], asked: int, finishing: bool = False) -> None:
        jobs = answer.get("jobs") or ()
        with self._cond:
            m.claimed = time.monotonic()
            self._heard = 0.0 if answer.get("drain") else m.claimed  # a poll says whether that is so
            self._free += asked - len(jobs)
            if not finishing:
                self._polling = None
            self._cond.notify_all()
        for said in jobs:
            self._begin(said, m)
        self._roster.hear(m, answer)

    def _finish(self) -> None:
        conn, pause = Connection(self._gateways), Backoff()
        while True:
            with self._cond:
                self._cond.wait_for(lambda: bool(self._ended) or self._closing)
                batch = sorted(self._ended, key=lambda e: e.job._member.id)
                self._ended.clear()
            if not batch:
                conn.close()
                return
            ok = True
            for _, group in groupby(batch, key=lambda e: e.job._member.id):
                ok = self._send(conn, list(group)) and ok
            if ok:
                pause.reset()
            else:
                time.sleep(pause.next())

    def _send(self, conn: Connection, batch: List[Ended]) -> bool:
        m = batch[0].job._member
        items = [] if m.lost else [e.item for e in batch if e.item is not None]
        if not m.lost and any(e.job._lines or e.job._progress for e in batch):
            self._roster.flush(5)
        current = m is self._roster.current()
        freed = sum(e.slots for e in batch)
        with self._cond:
            claims = current and not self._stopping and not self._polling and bool(items or self._polling == 0)
            asked = self._free + freed if claims else 0
            if claims:
                self._free = 0
        claim = {"max": asked, "wait": "0s"}
        answer: Dict[str, Any] = {}
        try:
            if items:
                body = '{"results":[' + ",".join(items) + "]" + (f',"claim":{json.dumps(claim)}' if claims else "") + "}"
                answer = conn.call("POST", f"/workers/{m.id}/finish", body)
            elif claims:
                answer = conn.call("POST", f"/workers/{m.id}/claim", claim)
        except GatewayError as err:
            with self._cond:
                self._free += asked - freed if claims else 0
            if not self._roster.heed(m, err, current):
                if not err.temporary and err.status not in (401, 403) and items:
                    return self._divide(conn, batch, err)
                log.warning("finish: %s", err)
                self._again(batch)
                return False
            self._again(batch)
            return True
        with self._cond:
            if not claims:
                self._free += freed
                self._cond.notify_all()
        results = iter(answer.get("results") or ())
        for e in batch:
            if e.item is None or m.lost:
                m.running.pop(e.job._receipt, None)
                continue
            said: Dict[str, Any] = next(results, {})
            if said.get("status") == "invalid":
                self._refuse(e, str(said.get("problem", "")), 0)
                continue
            m.running.pop(e.job._receipt, None)
            if said.get("status") == "fenced":
                log.warning("job %d: another run counts", e.job.id)
        if claims:
            self._receive(m, answer, asked, True)
        return True

    def _divide(self, conn: Connection, batch: List[Ended], err: GatewayError) -> bool:
        """The gateway refuses the call as such: find the item that it means."""
        if len(batch) > 1:
            return all([self._send(conn, [e]) for e in batch])
        self._refuse(batch[0], str(err), batch[0].slots)
        return True

    def _refuse(self, e: Ended, problem: str, slots: int) -> None:
        """Instead of what the gateway does not accept, send that it does not."""
        log.error("job %d: what came of it is refused: %s", e.job.id, problem)
        item = None if e.refused else failure(e.job, f"the outcome was refused: {problem}", "stint.Refused", retry=False)
        self._again([Ended(e.job, item, slots, True)])

    def _again(self, batch: List[Ended]) -> None:
        with self._cond:
            self._ended.extend(batch)
