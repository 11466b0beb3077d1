"""The quota keys, what they limit, and how their numbers are written.

Source of types and ranges: org.apache.kafka.server.config.QuotaConfig and
org.apache.kafka.controller.ClientQuotaControlManager.
"""

import re
from collections.abc import Iterable
from decimal import Context, Decimal
from functools import lru_cache
from math import fsum, inf, isfinite, isnan, nextafter
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER

MAX_EXACT = 2.0**53
"""Above this number a double, the type in the protocol, skips whole numbers."""
MAX_INT = 2_147_483_647.0
UNLIMITED = "unlimited"
"""The text for the largest value, which exempts an entity from a default."""


STARVING_BYTES = 16_384.0
"""Bytes per second: batch.size of Kafka's producer, so one batch a second."""
STARVING_PERCENTAGE = 0.1
"""Percent of a thread: at half of it, a broker 4.4 delayed each request by a second."""


class Measured(NamedTuple):
    """How a broker measures the use of a key for each client: the `type` of its MBean."""

    resource: str
    attribute: str
    """The attribute of the MBean that the quota limits."""
    hides_use: bool = False
    """Whether brokers record no use of a client while they throttle it."""
    is_repeated: bool = False
    """Whether a throttled client has to send a request again, and may wait again for its response:
    brokers send an empty one, so a limit can throttle for longer than its bytes take."""

    @property
    def is_whole(self) -> bool:
        """Whether brokers count all that a client wants while they throttle it."""
        return not (self.hides_use or self.is_repeated)


class QuotaKey(Struct, frozen=True):
    """One key that Kafka knows, and everything that depends on the key: no other place lists keys.

    `unlimited` is the default value of the key in QuotaConfig: Long.MAX_VALUE
    (as a double 2^63, exact) for bytes, Integer.MAX_VALUE for all others. Brokers accept it.
    """

    name: str
    unit: str
    limits: str
    types: frozenset[str]
    whole: bool
    largest: float
    unlimited: float = MAX_INT
    measured: Measured | None = None
    """None if brokers do not measure it for each client."""
    starving: float = 0.0
    """A limit below it all but stops a busy client."""
    small_guard: str | None = None
    """The field of `guards` in cluster.yaml with the smallest limit that needs no approval."""
    by_controller: bool = False
    """Whether the active controller enforces it, and not each broker."""

    def unit_of(self, value: float) -> str:
        """Return the unit as written after a value: `1 connection/s`, `2 connections/s`."""
        return self.unit.replace("s/s", "/s") if value == 1 else self.unit


_CLIENT = frozenset({USER, CLIENT_ID})
_LONG = 2.0**63
BYTES, PERCENT = "bytes/s", "%"
THREAD_KEY = "request_percentage"
"""The key that limits the time of a broker's threads: 100 is all of one thread."""
QUOTA_KEYS = {
    key.name: key
    for key in (
        QuotaKey(
            name="producer_byte_rate",
            unit=BYTES,
            limits="produced bytes",
            types=_CLIENT,
            whole=True,
            largest=MAX_EXACT,
            unlimited=_LONG,
            measured=Measured("Produce", "byte_rate"),
            starving=STARVING_BYTES,
            small_guard="small_byte_rate",
        ),
        QuotaKey(
            name="consumer_byte_rate",
            unit=BYTES,
            limits="fetched bytes",
            types=_CLIENT,
            whole=True,
            largest=MAX_EXACT,
            unlimited=_LONG,
            measured=Measured("Fetch", "byte_rate", is_repeated=True),
            starving=STARVING_BYTES,
            small_guard="small_byte_rate",
        ),
        QuotaKey(
            name=THREAD_KEY,
            unit=PERCENT,
            limits="request and network threads",
            types=_CLIENT,
            whole=False,
            largest=MAX_EXACT,
            measured=Measured("Request", "request_time", hides_use=True),
            starving=STARVING_PERCENTAGE,
            small_guard="small_percentage",
        ),
        QuotaKey(
            name="controller_mutation_rate",
            unit="mutations/s",
            limits="topic changes",
            types=_CLIENT,
            whole=False,
            largest=MAX_EXACT,
            measured=Measured("ControllerMutation", "mutation_rate", hides_use=True),
            by_controller=True,
        ),
        QuotaKey(
            name="connection_creation_rate",
            unit="connections/s",
            limits="new connections",
            types=frozenset({IP}),
            whole=True,
            largest=MAX_INT,
        ),
    )
}
CLIENT_KEYS = tuple(key.name for key in QUOTA_KEYS.values() if USER in key.types)
IP_KEYS = tuple(key.name for key in QUOTA_KEYS.values() if IP in key.types)
MEASURED_KEYS = tuple(key.name for key in QUOTA_KEYS.values() if key.measured)
"""The keys whose use brokers measure for each client."""
(BYTE_KEY, *_) = (key.name for key in QUOTA_KEYS.values() if key.unit == BYTES)
"""A key of bytes, where any will do."""

BYTE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_THOUSANDTHS = 1000
_LIMIT = re.compile(r"(?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)(?:\s*(?P<unit>[A-Za-z%/]+))?")
_DIGITS = re.compile("[1-9][0-9]{0,14}")
_NO_LIMIT = frozenset({UNLIMITED, "infinity", "infinite", "inf", ".inf"})
_SEPARATORS = re.compile("[,_']")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}(?![0-9,])")
_CARELESS = re.compile(
    r"\+?(?P<number>[0-9]{1,3}(?:[,'][0-9]{3})+|[0-9][0-9_]{0,19}(?:\.[0-9]{1,9})?(?:[eE]\+?[0-9]{1,2})?)"
    r"\s*(?P<unit>[A-Za-z%/ ]*)"
)
"""A number with separators, an exponent or leading zeros, and a unit with spaces in it."""
_LONGEST, _FEW_DIGITS = 40, 12
_EXACT = Context(prec=2 * _LONGEST)


def find_applied(key: str, value: float) -> float:
    """Return the limit that brokers apply for a stored value; infinity if it limits nobody.

    Of new connections they apply a whole number: NaN and parts of 1 block an address. Source:
    ClientQuotaMetadataManager.
    """
    known = QUOTA_KEYS.get(key)
    if key in IP_KEYS and (isnan(value) or value < 1):
        return 0.0
    return value if isfinite(value) and (known is None or value < known.unlimited) else inf


def limits_a_client(key: str, value: float) -> bool:
    """Return whether a stored value limits a client."""
    return find_applied(key, value) < inf


def parse_limit(key: QuotaKey, text: str) -> float:
    """Return the value, in the key's unit, of a limit as written: `10 MiB`, `50`, `unlimited`.

    Raises ValueError with a message that continues the key's name: `must be greater than 0`.
    """
    if _DIGITS.fullmatch(text) and (number := float(text)) <= key.largest:  # nearly every limit
        return number
    if text.strip() == UNLIMITED:
        return key.unlimited
    match = _LIMIT.fullmatch(text.strip())
    if match is None or len(match["number"]) > _LONGEST:
        unit = " with an optional unit (for example MiB)" if key.unit == BYTES else ""
        raise ValueError(
            f"must be plain decimal digits{unit}, without sign, exponent or "
            f"leading zero, or {UNLIMITED}{_meant(key, text)}"
        )
    factor = _factor(key, match["unit"], match["number"])
    exact = _EXACT.multiply(Decimal(match["number"]), factor)
    if key.whole and exact != exact.to_integral_value():
        raise ValueError(f"must be a whole number of {key.unit}, not {text.strip()}")
    if exact <= 0:
        raise ValueError("must be greater than 0: Kafka has no quota that blocks")
    if exact > Decimal(key.largest):
        raise ValueError(
            f"must not be above {int(key.largest)}; to lift the limit, write {UNLIMITED}"
        )
    return float(exact)


def _factor(key: QuotaKey, unit: str | None, number: str) -> Decimal:
    if unit is None or unit in (key.unit, key.unit_of(1)):
        return Decimal(1)
    if key.unit == BYTES:
        if unit.removesuffix("/s") in BYTE_UNITS:
            return Decimal(BYTE_UNITS[unit.removesuffix("/s")])
        raise ValueError(
            f"has the unknown unit {unit}{_meant_unit(unit, number)} "
            f"Use one of {', '.join(BYTE_UNITS)}, per second"
        )
    raise ValueError(f"is in {key.unit}, not in {unit}: write only the number")


def _meant_unit(unit: str, number: str) -> str:
    """Return the units that an invalid unit may mean, as the end of a sentence."""
    if "bit" in unit.lower() or unit.endswith("bps"):
        return f", which counts bits; a byte has 8{_meant_bits(unit, number)}."
    bare = unit.lower().removesuffix("/sec").removesuffix("/s").removesuffix("ps")
    meant = [
        unit for unit in BYTE_UNITS if bare in {unit.lower(), unit[:-1].lower(), unit[0].lower()}
    ]
    return f"; did you mean {' or '.join(meant)}?" if bare and meant else "."


def _meant_bits(unit: str, number: str) -> str:
    """Return how to write a number of bits in bytes, as the end of a sentence."""
    power = " kmg".find(unit[0].lower())
    if power < 1 or len(number) > _FEW_DIGITS:
        return ""
    bits = Decimal(number) * (1024 if unit[1:2] == "i" else 1000) ** power
    if not bits or bits % 8:
        return ""
    return f": write {' '.join(in_byte_unit(float(bits / 8)))}".replace(",", "")


def _meant(key: QuotaKey, text: str) -> str:
    """Return the limit that an invalid text may mean, as the end of a sentence."""
    given = text.strip()
    if given.lower() in _NO_LIMIT:
        return f": write {UNLIMITED}"
    if given == "-1":
        return f": if no limit is meant, write {UNLIMITED}"
    point = given.replace(",", ".")
    if _DECIMAL_COMMA.match(given) and _is_limit(key, point):
        return f": write {point}"
    match = _CARELESS.fullmatch(given)
    if match is not None and (key.whole or "," not in given):  # a comma may be a decimal point
        number = f"{Decimal(_SEPARATORS.sub('', match['number'])):f}"
        meant = f"{number} {match['unit'].replace(' ', '')}".strip()
        if meant != given and _is_limit(key, meant):
            return f": write {meant}"
    return ""


def _is_limit(key: QuotaKey, text: str) -> bool:
    try:
        return parse_limit(key, text) > 0
    except ValueError:
        return False


# Each output of a run has every limit again: 50,000 texts for 10,000 changes.
@lru_cache(maxsize=2**16)
def format_limit(key: str, value: float | None) -> str:
    """Format a value exactly, with its unit: `15 MiB/s`, `25 %`, `unlimited`, `none`.

    A key that quota-ops does not know is shown as its bare number.
    """
    if value is None:
        return "none"
    known = QUOTA_KEYS.get(key)
    if known is None or not isfinite(value):
        return format_number(value)
    if value == known.unlimited:
        return UNLIMITED
    if known.unit != BYTES:
        return f"{format_number(value)} {known.unit_of(value)}"
    number, unit = in_byte_unit(value)
    return f"{number} {unit}/s"


def in_byte_unit(value: float) -> tuple[str, str]:
    """Return the shortest exact number and unit (`10`, `MiB`) for a count of bytes."""
    candidates = [(format_number(value), "B")]
    if value.is_integer():
        thousandths = int(value) * _THOUSANDTHS
        candidates += [
            (_decimal(*divmod(thousandths // factor, _THOUSANDTHS)), unit)
            for unit, factor in BYTE_UNITS.items()
            if value >= factor and thousandths % factor == 0
        ]
    return min(candidates, key=lambda candidate: len(candidate[0].replace(",", "")))


def _decimal(whole: int, thousandths: int) -> str:
    return f"{whole:,}.{thousandths:03}".rstrip("0").rstrip(".")


def format_number(value: float) -> str:
    """Format a number exactly, with commas between thousands: `1,048,576`, `0.1`."""
    if not isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < MAX_EXACT * 2**10:
        return f"{int(value):,}"
    return repr(value)


def to_decimal(limit: float) -> Decimal:
    """Return a limit as people write it: 0.1 is a tenth, which no double is."""
    return Decimal(repr(limit))


def add_limits(limits: Iterable[float]) -> float:
    """Return the sum of limits as people add them: three times 0.1 is 0.3."""
    values = tuple(limits)
    total = fsum(values)  # much faster than decimals, and exact for whole numbers
    return total if total.is_integer() else float(sum(map(to_decimal, values)))


def multiply_limit(limit: float, times: int) -> float:
    """Return a limit so many times, as people compute it: three times 33.3 is 99.9."""
    return float(to_decimal(limit) * times)


def find_factor(before: float, after: float) -> float:
    """Return how many times as high a limit is, as people compute it: 0.7 is 7 times 0.1."""
    return float(f"{after / before:.15g}")


def find_change(before: float, after: float) -> float:
    """Return the change of a limit in percent, as people compute it: from 100 to 93, it is -7.

    It is never -100, as no limit is cut to 0.
    """
    return max(float(f"{(after - before) / before * 100:.15g}"), _LEAST)


_LEAST = nextafter(-100.0, 0.0)


def json_number(value: float | None) -> float | str | None:
    """Return a number that JSON can represent; NaN and infinity become text."""
    return value if value is None or isfinite(value) else str(value)


def same(one: float | None, other: float | None) -> bool:
    """Return whether two stored values are equal; NaN (stored before Kafka 4.4) equals itself."""
    if one is None or other is None:
        return one is other
    return one == other or (isnan(one) and isnan(other))


def explain_unalterable(types: tuple[str, ...], key: str) -> str | None:
    """Return why a broker would reject or ignore a change of this row; None if it accepts it.

    Source: ClientQuotaControlManager.validateEntity and the key sets per shape.
    """
    unknown = [kind for kind in types if kind not in ENTITY_TYPES]
    if unknown:
        return f"unknown entity type {unknown[0]}"
    if IP in types and len(types) > 1:
        return "an ip together with another type"
    if key not in QUOTA_KEYS:
        return "unknown quota key"
    if not QUOTA_KEYS[key].types.issuperset(types):
        return "a key of another entity type"
    return None
