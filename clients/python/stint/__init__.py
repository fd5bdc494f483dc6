"""Run and enqueue jobs of stint, the durable job engine on PostgreSQL and SQLite."""
from .client import Client
from .enqueue import enqueue, enqueue_async, enqueue_many, enqueue_many_async
from .errors import Cancel, Cancelled, GatewayError, JobFailed, NoRetry, NoSignal, Snooze, Suspended
from .job import Job
from .worker import Worker

__all__ = ["Cancel", "Cancelled", "Client", "GatewayError", "Job", "JobFailed", "NoRetry", "NoSignal", "Snooze", "Suspended", "Worker",
           "enqueue", "enqueue_async", "enqueue_many", "enqueue_many_async"]
