"""python -m stint module:worker runs the Worker of a module."""
import importlib
import logging
import sys

from . import GatewayError, Worker


def main() -> None:
    module, _, name = sys.argv[1].partition(":") if len(sys.argv) == 2 else ("", "", "")
    if not module:
        sys.exit("usage: python -m stint module[:worker]")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.path.insert(0, "")
    worker = getattr(importlib.import_module(module), name or "worker")
    if not isinstance(worker, Worker):
        sys.exit(f"{sys.argv[1]} is no stint.Worker")
    try:
        worker.run()
    except GatewayError as err:
        sys.exit(str(err))


main()
