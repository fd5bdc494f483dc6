"""A worker that is killed: its handler writes down when it begins and ends."""

import os
import random
import sys
import time

import stint

worker = stint.Worker(os.environ["STINT_GATEWAY_URL"], os.environ["STINT_TOKEN"], slots=5, time_to_live="5s")
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def note(what, job):
    os.write(log, f"{what} {job.id} {time.monotonic_ns()}\n".encode())


@worker.handler("chaos")
def chaos(job):
    note("begin", job)
    try:
        time.sleep(random.random() * 0.05)
        if random.random() < 0.1:
            raise RuntimeError("by chance")
        return {"by": "python"}
    finally:
        note("end", job)


worker.run()
