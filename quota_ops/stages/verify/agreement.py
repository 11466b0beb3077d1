"""Whether the brokers agree after they were read back, and else which of them does not."""

from collections.abc import Sequence

from quota_ops.model.errors import Refused, Unreachable
from quota_ops.model.numbers import counted, plural
from quota_ops.model.verification import (
    BACK_OR_GONE,
    ONLY_BOOTSTRAP,
    BrokerAnswer,
    RowVerdict,
)


def raise_unless_agreed(
    brokers: Sequence[BrokerAnswer], wrongs: tuple[RowVerdict, ...], late: str
) -> None:
    """Raise Refused where a broker differs or was not read back, Unreachable where none was.

    `late` is what is known of late writes among the rows that are wrong.
    """
    silent = [
        f"{one.named} {one.error}" if one.absent else one.error
        for one in brokers
        if one.error is not None
    ]
    said = [
        f"{one.named} differs from Git in {counted(one.behind, 'key')}"
        for one in brokers
        if one.behind
    ]
    if not (silent or said):
        return
    message = "; ".join([*said, *silent])
    if len(silent) == len(brokers):
        raise Unreachable(f"no broker could be asked: {message}", "Verify again when one answers.")
    if wrongs:
        are = plural(len(wrongs), "row is", "rows are")
        remedy = f"{len(wrongs):,} {are} not as Git says.{late}"
    else:
        what = _REMEDY if any(one.error and not one.absent for one in brokers) else BACK_OR_GONE
        every = "every row that was compared" if brokers[0].left else "every row"
        remedy = f"The others hold {every}. {what}"
    raise Refused(f"{_trouble(brokers)}: {message}", remedy)


_REMEDY = f"Verify again when it answers. {ONLY_BOOTSTRAP}"


def _trouble(brokers: Sequence[BrokerAnswer]) -> str:
    if brokers[0].bootstrap:
        return "the bootstrap address does not hold what it should"
    if all(one.agrees or one.absent for one in brokers):
        return "not every broker could be asked"
    return "not every broker holds what it should"
