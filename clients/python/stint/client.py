"""Enqueue, look at and wait for jobs over HTTP."""
import time
from typing import Any, Iterable, Sequence

from .enqueue import given
from .errors import GatewayError, JobFailed
from .gateway import Gateways, backoff


class Client:
    """Any thread may use it. gateway and token are those of Worker."""

    def __init__(self, gateway: str | Sequence[str] | None = None, token: str | None = None) -> None:
        gateways = Gateways(gateway, token)
        self._call, self.close = gateways.call, gateways.close

    def enqueue(self, kind: str, args: Any = None, **options: Any) -> int:
        """Enqueue a job and return its id. With an idempotency_key a call that failed can be repeated."""
        return self.enqueue_many(kind, [args], **options)[0]

    def enqueue_many(self, kind: str, args: Iterable[Any], *, force: bool = False, **options: Any) -> list[int]:
        """Enqueue a job for each of args, all or none, with options as of stint.enqueue, and max_losses. force admits unknown kinds."""
        said = {k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in given(options).items()}
        jobs = [{"kind": kind, "args": {} if a is None else a, **said} for a in args]
        return [r["id"] for r in self._call("POST", "/jobs", {"jobs": jobs, "force": force})["items"]]

    def job(self, id: int, wait: float = 0) -> dict[str, Any]:
        """All that is known of a job: its state, args, attempts and more; after up to 30 seconds of waiting for its end."""
        return dict(self._call("GET", f"/jobs/{id}?wait={min(wait, 30.0):.3f}s", timeout=45))

    def result(self, id: int, timeout: float = 30.0) -> Any:
        """Wait for the end of a job, for so many seconds: its result, JobFailed if it has none, or TimeoutError."""
        end = time.monotonic() + timeout
        for pause in backoff():
            left = max(0.0, end - time.monotonic())
            try:
                job = self.job(id, left)
            except GatewayError as err:
                if not err.temporary or left == 0:
                    raise
                time.sleep(min(left, pause))
                continue
            last = (job.get("attempts") or [{}])[-1]
            if job["state"] == "completed":
                return last.get("result")
            if job["state"] in ("failed", "cancelled"):
                raise JobFailed(id, job["state"], last.get("error") or {}, job.get("reason", ""))
            if left == 0:
                raise TimeoutError(f"job {id} is {job['state']} after {timeout} s")

    def signal(self, id: int, name: str, value: Any = None, key: str | None = None) -> None:
        """Send a signal to a job. Of several with one key the first counts, so that a call can be repeated."""
        self._call("POST", f"/jobs/{id}/signal", {"name": name, "value": value, **({"key": key} if key else {})})

    def cancel(self, id: int, why: str = "") -> str:
        """Cancel a job, or ask it to stop if it runs. The answer says what it is now."""
        return str(self._call("POST", "/jobs/cancel", {"ids": [id], **({"why": why} if why else {})})["answers"][str(id)])
