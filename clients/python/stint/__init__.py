"""Run and enqueue jobs of stint, the durable job engine on PostgreSQL and SQLite."""
from .client import AsyncClient, Client
from .enqueue import enqueue, enqueue_async, enqueue_many, enqueue_many_async
from .errors import Cancel, Cancelled, GatewayError, JobFailed, NoRetry, NoSignal, Snooze, Suspended
from .job import Job
from .worker import Worker

for _c in (Cancel, Cancelled, GatewayError, JobFailed, NoRetry, NoSignal, Snooze, Suspended):
    _c.__module__ = "stint"  # the name that people see in errors

__all__ = [
    "AsyncClient", "Cancel", "Cancelled", "Client", "GatewayError", "Job", "JobFailed", "NoRetry", "NoSignal", "Snooze",
    "Suspended", "Worker", "enqueue", "enqueue_async", "enqueue_many", "enqueue_many_async",
]
