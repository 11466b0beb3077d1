"""Desired state as the tests write it: entities and limits as YAML."""

from decimal import Decimal
from typing import Any

import yaml

from quota_ops.model.quotas.entity import DEFAULT_TEXT, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, UNLIMITED
from tests.writing import Limits


def quota_entry(entity: str, limits: Limits) -> dict[str, Any]:
    """Return an entry of a quotas file."""
    names = Entity.parse(entity).as_dict()
    return {
        **{kind: {"default": True} if name is None else name for kind, name in names.items()},
        "limits": {key: _Digits.of(key, value) for key, value in limits.items() if value},
    }


def to_yaml(value: Any) -> str:
    """Return the text of a file of desired state."""
    return yaml.dump(value, Dumper=_Dumper)


class _Digits(str):
    """A limit as desired state has it: digits without quotes and exponent, or `unlimited`."""

    __slots__ = ()

    @classmethod
    def of(cls, key: str, value: float) -> "_Digits":
        known = QUOTA_KEYS.get(key)
        return cls(UNLIMITED if known and value == known.unlimited else f"{Decimal(repr(value)):f}")


class _Dumper(yaml.SafeDumper):
    """Writes `_Digits` as they are, and in quotes a name that looks like Kafka's default."""


def _as_they_are(dumper: yaml.SafeDumper, digits: _Digits) -> yaml.Node:
    kind = "str" if digits == UNLIMITED else "float" if "." in digits else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", digits)


def _in_quotes(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if text == DEFAULT_TEXT else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _in_quotes)
_Dumper.add_representer(_Digits, _as_they_are)
