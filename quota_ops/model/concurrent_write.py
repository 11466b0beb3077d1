"""An entity that another run is writing at this moment."""

from typing import NamedTuple


class ConcurrentWrite(NamedTuple):
    """An entity that a run writes; `sure` where its process lives and its request is on the way."""

    run: str
    entity: str
    sure: bool
