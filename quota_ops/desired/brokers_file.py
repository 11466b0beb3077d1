"""Brokers in place of those of the cluster: a number, or a file with the topics of each."""

from pathlib import Path

import yaml

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.placement import Placement

_EXAMPLE = "Map each broker to the topics that it leads, for example {1: [orders], 2: []}."
_MOST = 100_000


def read_brokers(given: str) -> Placement:
    """Read a number of brokers, or a YAML or JSON file that maps each broker to its topics.

    brokers.json in the folder of a run is such a file. Raises InvalidInput.
    """
    if given.isdecimal():
        if not 0 < int(given) <= _MOST:
            raise InvalidInput(f"--brokers {given} is not a number of brokers", "Write 1 or more.")
        return Placement.of_count(int(given))
    try:
        placement = Placement.from_json(yaml.safe_load(Path(given).read_text("utf-8")))
    except OSError as error:
        remedy = "Pass a number of brokers, or a file with the topics of each broker."
        raise InvalidInput(f"--brokers {given} cannot be read: {error.strerror}", remedy) from None
    except (AttributeError, TypeError, ValueError, RecursionError, yaml.YAMLError):
        raise InvalidInput(f"{given} does not list brokers", _EXAMPLE) from None
    if not placement.brokers:
        raise InvalidInput(f"{given} lists no broker", _EXAMPLE)
    return placement
