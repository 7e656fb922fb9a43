"""Runs the long forms of the tests of workers on Kafka: `python -m tests.kafka.soak [TRIAL …]`.
What came of each is kept and shown with the trials of the service.
"""

from __future__ import annotations

import sys

from tests.kafka.trials import TRIALS
from tests.service.soak import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], TRIALS))
