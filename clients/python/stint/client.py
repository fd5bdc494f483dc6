"""Enqueue, look at and wait for jobs over HTTP."""
from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from .enqueue import given
from .errors import GatewayError, JobFailed
from .gateway import Gateways, backoff


class Client:
    """Any thread may use it. gateway and token are those of Worker."""

    def __init__(self, gateway: Union[str, Sequence[str], None] = None, token: Optional[str] = None) -> None:
        self._gateways = Gateways(gateway, token)
        self.close = self._gateways.close

    def enqueue(self, kind: str, args: Any = None, **options: Any) -> int:
        """Enqueue a job and return its id. The options are those of stint.enqueue, and max_losses. If GatewayError says that
        nothing was answered the job may exist: with an idempotency_key the call can be repeated."""
        return self.enqueue_many(kind, [args], **options)[0]

    def enqueue_many(self, kind: str, args: Iterable[Any], *, force: bool = False, **options: Any) -> List[int]:
        """Enqueue a job for each of args, with the same options: all or none. At most 10,000. A kind that no worker ever
        declared is refused unless force is true."""
        said = {k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in given(options).items()}
        jobs = [{"kind": kind, "args": {} if a is None else a, **said} for a in args]
        return [r["id"] for r in self._call("POST", "/jobs", {"jobs": jobs, "force": force})]

    def job(self, id: int) -> Dict[str, Any]:
        """All that is known of a job: its state, args, attempts and more."""
        answer: Dict[str, Any] = self._call("GET", f"/jobs/{id}")
        return answer

    def result(self, id: int, timeout: float = 30.0) -> Any:
        """Wait for the end of a job, for so many seconds: its result, JobFailed if it has none, or TimeoutError."""
        end, pause = time.monotonic() + timeout, backoff()
        while True:
            left = max(0.0, end - time.monotonic())
            try:
                job = self._call("GET", f"/jobs/{id}?wait={min(left, 30.0):.3f}s", timeout=45)
            except GatewayError as err:
                if not err.temporary or left == 0:
                    raise
                time.sleep(min(left, next(pause)))
                continue
            last = (job.get("attempts") or [{}])[-1]
            if job["state"] == "completed":
                return last.get("result")
            if job["state"] in ("failed", "cancelled"):
                raise JobFailed(id, job["state"], last.get("error"), job.get("reason") or "")
            if left == 0:
                raise TimeoutError(f"job {id} is {job['state']} after {timeout} s")

    def signal(self, id: int, name: str, value: Any = None, key: Optional[str] = None) -> None:
        """Send a signal to a job. Of several with one key the first counts, so that a call can be repeated."""
        self._call("POST", f"/jobs/{id}/signal", {"name": name, "value": value, **({"key": key} if key else {})})

    def cancel(self, id: int, why: str = "") -> str:
        """Cancel a job, or ask it to stop if it runs. The answer says what it is now."""
        return str(self._call("POST", "/jobs/cancel", {"ids": [id], **({"why": why} if why else {})})["answers"][str(id)])

    def _call(self, method: str, path: str, body: Any = None, timeout: float = 15.0) -> Any:
        """Ask one gateway after another, unless one may have done already what it was asked."""
        for _ in self._gateways.all[1:]:
            try:
                return self._gateways.call(method, path, body, timeout)
            except GatewayError as err:
                if not err.temporary or err.sent and method != "GET":
                    raise
        return self._gateways.call(method, path, body, timeout)
