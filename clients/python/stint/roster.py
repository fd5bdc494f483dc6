"""The worker's place in the roster: joining it, and the beats that keep it there."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from .durations import text
from .errors import GatewayError
from .gateway import Backoff, Connection, Gateways
from .job import Job
from .threads import guarded

log = logging.getLogger("stint")


class Member:
    """One worker id. A worker whose gateway is gone gets a new one, and keeps the old for what it still runs."""

    backoff = Backoff

    def __init__(self, said: Dict[str, Any], since: float, roster: "Roster") -> None:
        self.id: str = said["worker"]
        self.time_to_live: float = said["time_to_live"] / 1e9
        self.beat_every: float = said["beat_every"] / 1e9
        self.beaten = since  # when the last beat was sent that was answered
        self.claimed = since  # when a claim was answered last
        self.running: Dict[str, Job] = {}  # by receipt, until their finish was answered
        self.lost = False
        self._roster = roster

    def gone(self) -> None:
        self._roster.retire(self)


class Roster:
    """Fields are guarded by _cond. Beats are sent by one thread, which runs nothing of the program's."""

    def __init__(self, gateways: Gateways, card: Dict[str, Any], stop: Callable[[Optional[float], Optional[Exception]], None]) -> None:
        self._gateways, self._card = gateways, card
        self._cond = threading.Condition()
        self._current: Optional[Member] = None
        self._old: List[Member] = []
        self._begun = self._ended = 0  # rounds of beats
        self._wanted = 0
        self._closing = False
        self._thread = guarded(self._beat, stop, "stint beats")

    def start(self) -> None:
        self._thread.start()

    def current(self) -> Optional[Member]:
        return self._current

    def join(self, conn: Connection) -> Member:
        """Become a member, or raise GatewayError."""
        since = time.monotonic()
        m = Member(conn.call("POST", "/workers", self._card), since, self)
        with self._cond:
            self._current = m
            self._cond.notify_all()
        log.info("joined as %s at %s", m.id, self._gateways.current)
        return m

    def retire(self, m: Member) -> None:
        """Its gateway does not know it any more: go on under a new id, and see to what runs under the old."""
        with self._cond:
            if self._current is m:
                self._current = None
                self._old.append(m)
                self._cond.notify_all()

    def lose(self, m: Member, why: str) -> None:
        """What m runs counts no more."""
        with self._cond:
            if m.lost:
                return
            m.lost = True
            if self._current is m:
                self._current = None
            if m in self._old:
                self._old.remove(m)
            jobs = list(m.running.values())
            m.running.clear()
            self._cond.notify_all()
        log.warning("%s: %d running jobs are lost", why, len(jobs))
        for job in jobs:
            job._cancel("lost")

    def heed(self, m: Member, err: GatewayError, was_current: bool) -> bool:
        """Whether err says that m is not a member as before."""
        if err.status == 410:
            self.lose(m, "the worker was buried or has left")
        elif err.status == 404 and was_current:
            self.retire(m)
        elif err.status == 404:
            self.lose(m, "no gateway knows the worker")
        else:
            return False
        return True

    def hear(self, m: Member, answer: Dict[str, Any]) -> None:
        """Cancel what an answer names."""
        for c in answer.get("cancel") or ():
            job = m.running.get(c["receipt"])
            if job is not None:
                job._cancel(c["reason"])

    def flush(self, timeout: float) -> None:
        """Have a beat bring what jobs said until now, and wait for it."""
        with self._cond:
            self._wanted = target = self._begun + 1
            self._cond.notify_all()
            self._cond.wait_for(lambda: self._ended >= target or self._closing, timeout)

    def close(self) -> None:
        """Stop the beats and leave. What still runs is handed back."""
        with self._cond:
            self._closing = True
            members = self._old + ([self._current] if self._current else [])
            self._current = None
            self._cond.notify_all()
        self._thread.join(10)
        conn = Connection(self._gateways)
        for m in members:
            self._leave(m, conn)
        conn.close()

    def _leave(self, m: Member, conn: Connection) -> None:
        try:
            conn.call("DELETE", f"/workers/{m.id}", timeout=5)
        except GatewayError as err:
            log.info("leave: %s", err)

    def _beat(self) -> None:
        conn, pause, ok = Connection(self._gateways), Backoff(), True
        while True:
            with self._cond:
                m = self._current or (self._old[0] if self._old else None)
                wait = pause.next() if not ok else m.beat_every if m else 1.0
                if m and not ok:
                    wait = min(wait, m.beat_every)
                self._cond.wait_for(lambda: self._closing or self._wanted > self._begun, wait)
                if self._closing:
                    conn.close()
                    return
                self._begun += 1
                members = self._old + ([self._current] if self._current else [])
            ok = all([self._beat_once(m, conn) for m in members])
            if ok:
                pause.reset()
            with self._cond:
                self._ended = self._begun
                self._cond.notify_all()

    def _beat_once(self, m: Member, conn: Connection) -> bool:
        was_current = m is self._current
        if not was_current and not m.running:
            with self._cond:
                if m in self._old:
                    self._old.remove(m)
            self._leave(m, conn)
            return True
        jobs = list(m.running.values())
        said = [job._take_said() for job in jobs]
        sent = time.monotonic()
        fence = m.beaten + 0.75 * m.time_to_live
        body: Dict[str, Any] = {"running": said}
        if not was_current:
            body["moved_for"] = text(sent - m.claimed)
        try:
            self.hear(m, conn.call("POST", f"/workers/{m.id}/beat", body, timeout=max(0.5, min(10.0, m.time_to_live / 4, fence - sent))))
            m.beaten = sent
            return True
        except GatewayError as err:
            if err.temporary or err.status in (401, 403, 404):
                for job, s in zip(jobs, said):
                    job._give_back_said(s)
            if not self.heed(m, err, was_current):
                log.warning("beat: %s", err)
        if not m.lost and time.monotonic() > fence:
            self.lose(m, f"no beat succeeded for {0.75 * m.time_to_live:g}s")
        return False
