"""What the processes of a race do; this module imports little, so that they start fast."""

from quota_ops.store.places.run_store import open_place


def create_numbers(address: str, racer: int, rounds: int) -> list[bool]:
    """Create each number, and return which of them this racer won."""
    root = open_place(address)
    return [(root / f"{number:04d}").create(b"%d" % racer) for number in range(rounds)]
