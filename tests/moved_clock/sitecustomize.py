"""Move the clock of each Python process: a run with this folder on PYTHONPATH begins at CLOCK.

Brokers, TLS and the clients of buckets keep the machine's clock.
"""

import os
import time
from datetime import datetime

import time_machine

if "CLOCK_AHEAD" not in os.environ:  # so that later processes continue this clock
    begin = datetime.fromisoformat(os.environ["CLOCK"])
    os.environ["CLOCK_AHEAD"] = str(begin.timestamp() - time.time())
time_machine.travel(time.time() + float(os.environ["CLOCK_AHEAD"])).start()
