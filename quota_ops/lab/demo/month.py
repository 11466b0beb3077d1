"""A month of daily runs before today, on the demo's broker, so that its reports have a history.

`python -m quota_ops.lab.demo.month` plays it in the repository where it is started. The runs are
real; only Python's clocks are moved back, by the library time-machine, while each of them runs.
"""

import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING

from quota_ops.kafka.connection import find_connection
from quota_ops.lab.demo.by_hand import ByHand, MiB, set_by_hand

if TYPE_CHECKING:
    from collections.abc import Mapping

DAYS = 29
"""How many days ago the month begins."""
FIRST = ("reconcile", "demo", "--allow", "default_touched", "--reason", "first rollout")
_LOOK, _REPAIR = ("plan", "demo"), ("reconcile", "demo")
_INDEXER = ByHand("user=indexer", "consumer_byte_rate", 150 * MiB, "a full index was late")
_CRAWLER = 'user="CN=crawler,OU=search,O=example"'
_BY_HAND: "Mapping[int, ByHand]" = {
    25: _INDEXER,
    14: ByHand("ip=10.20.0.7", "connection_creation_rate", 80.0, "a gateway reconnected twice"),
    10: _INDEXER,
    6: ByHand("client-id=search-indexer", "producer_byte_rate", None, "taken for an old quota"),
}
"""What somebody changed outside Git, by how many days ago."""
_COMMANDS: "Mapping[int, tuple[str, ...]]" = {
    DAYS: FIRST,
    **dict.fromkeys((23, 17, 12, 9, 4), _REPAIR),
}
"""The command of a day; on all other days a plan looks."""
_ALTER = (
    *("alter", "demo", "--names", _CRAWLER, "--add", "producer_byte_rate=12 MiB"),
    *("--reason", "INC-31: the crawler catches up", "--by", "anna"),
)
_ALTERED = 20
"""How many days ago a quota was altered in an emergency."""


def can_play() -> bool:
    """Return whether time-machine is installed."""
    return find_spec("time_machine") is not None


def main() -> None:
    """Play the month, and print each day when it is over; exits with 1 if a run fails."""
    import time_machine  # a library for development

    connection = find_connection("demo")
    morning = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0)
    for ago in range(DAYS, 0, -1):
        if ago in _BY_HAND:
            set_by_hand(connection, [_BY_HAND[ago]])
        for hours, command in enumerate(
            [*([_ALTER] if ago == _ALTERED else []), _COMMANDS.get(ago, _LOOK)]
        ):
            moment = morning - timedelta(days=ago) + timedelta(hours=hours)
            with time_machine.travel(moment, tick=False):
                _run(command)
        print(f"{morning - timedelta(days=ago):%Y-%m-%d}", flush=True)  # noqa: T201 - progress


def _run(command: tuple[str, ...]) -> None:
    """Run a command in this process, which starts once for all days."""
    program = import_module("quota_ops.cli").main
    try:
        with redirect_stdout(StringIO()):
            program(command, prog_name="quota-ops")
    except SystemExit as ended:
        if ended.code:
            sys.stderr.write(f"quota-ops {' '.join(command)} exited with {ended.code}\n")
            sys.exit(1)


if __name__ == "__main__":
    main()
