"""JSON Schemas (2020-12) of both files, for editors and for programs that write desired state.

They come from the same tables as the reader and agree with it as far as a schema can: a schema
does not see other files, line breaks or how a scalar was written. Editors (yaml-language-server)
show patternErrorMessage and enumDescriptions; other programs ignore both.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml

from quota_ops.desired.yaml import shapes
from quota_ops.desired.yaml.values import NOTE
from quota_ops.findings.codes import CODES, SILENCEABLE
from quota_ops.model.quotas.entity import CLIENT_ID, IP, MAX_NAME_BYTES, USER
from quota_ops.model.quotas.quota import BYTE_UNITS, BYTES, QUOTA_KEYS, UNLIMITED, QuotaKey

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string", "minLength": 1}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FILE = {"type": "string", "pattern": r"^[^./][^/]*\.ya?ml$"}
_DEFAULT_PART = {
    "type": "object",
    "description": "{default: true} means every one without a quota of its own.",
    "properties": {shapes.DEFAULT: {"const": True}},
    "required": [shapes.DEFAULT],
    "additionalProperties": False,
}
_NAME = {"anyOf": [_TEXT | {"maxLength": MAX_NAME_BYTES}, _DEFAULT_PART]}
_ADDRESS = {"anyOf": [{"type": "string", "pattern": r"^[0-9a-f]*[.:][0-9a-f.:]+$"}, _DEFAULT_PART]}


def _or_list(name: Schema) -> Schema:
    """Return the schema of a name or a list of names."""
    names = {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}
    return {"anyOf": [*name["anyOf"], names]}


def quotas_schema() -> Schema:
    """Return the JSON Schema of a quotas file."""
    return {
        "$schema": _DRAFT,
        "title": "Kafka client quotas of one team",
        **_object(
            shapes.QUOTAS_FILE,
            {
                "quotas": {"type": "array", "items": _quota()},
                "groups": {"type": "array", "items": _group()},
            },
        ),
    }


def cluster_schema() -> Schema:
    """Return the JSON Schema of cluster.yaml."""
    entity_filter = _object(shapes.FILTER, dict.fromkeys(shapes.FILTER.fields, _NAME)) | {
        "minProperties": 1,
        "if": {"required": [IP]},
        "then": {"maxProperties": 1},
    }
    types: dict[str, Schema] = {
        "scope": {"type": "array", "items": entity_filter, "minItems": 1},
        "protect": {"type": "array", "items": entity_filter},
        "retired_brokers": {"type": "array", "items": _object(shapes.RETIRED_BROKER)},
        "guards": _object(shapes.GUARDS),
        "freeze": {"type": "array", "items": _object(shapes.FREEZE)},
        "memory": _object(shapes.MEMORY),
        "owners": {
            "type": "object",
            "propertyNames": NOTE.schema,
            "additionalProperties": _object(
                shapes.OWNER,
                dict.fromkeys(shapes.OWNER.fields, _TEXTS)
                | {"defaults": {"type": "boolean", "default": False}},
            ),
        },
        "use": {"type": "array", "items": {"anyOf": [_FILE, _object(shapes.USE, {"file": _FILE})]}},
        "profiles": _named_limits(shapes.PROFILE, {"profile": NOTE.schema}),
        "ceilings": _named_limits(shapes.CEILING, {"total": _limits()}),
        "capacity": _object(shapes.CAPACITY, _list_limits()),
        "usage": _object(
            shapes.USAGE,
            {
                "metrics": _object(shapes.METRICS),
                "throttle_times": _object(shapes.METRICS),
                "labels": _object(shapes.USAGE_LABELS),
            },
        ),
        "silence": _silence(),
    }
    return {
        "$schema": _DRAFT,
        "title": "A Kafka cluster's policy",
        **_object(shapes.CLUSTER_FILE, types),
    }


def _object(shape: shapes.Shape, types: Mapping[str, Schema] = MappingProxyType({})) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {
            name: {"description": field.description, **(field.schema or types[name])}
            | {"examples": [yaml.safe_load(field.example)]}
            for name, field in shape.fields.items()
        },
        "additionalProperties": False,
    }
    if required := [name for name in shape.required if name not in shape.instead]:
        schema["required"] = required
    if shape.instead:
        schema["allOf"] = [
            {"anyOf": [{"required": [name]} for name in (replaced, *others)]}
            for replaced, others in shape.instead.items()
        ]
    return schema


def _list_limits() -> dict[str, Schema]:
    return {name: _limit(key) for name, key in QUOTA_KEYS.items()}


def _limits() -> Schema:
    return _object(shapes.LIMITS, _list_limits()) | {"minProperties": 1}


def _quota() -> Schema:
    limits = _limits()
    types: dict[str, Schema] = {
        USER: _or_list(_NAME),
        CLIENT_ID: _or_list(_NAME),
        IP: _or_list(_ADDRESS),
        "limits": limits,
        "cluster_limits": limits,
        "profile": NOTE.schema,
        "overrides": _overrides(limits),
        "silence": _silence(),
    }
    return _object(shapes.QUOTA, types) | {
        "anyOf": [{"required": [kind]} for kind in (USER, CLIENT_ID, IP)],
        "if": {"required": [IP]},
        "then": {"properties": {USER: False, CLIENT_ID: False, "limits": _keys_of(IP)}},
        "else": {"properties": {"limits": _keys_of(USER)}},
    }


def _overrides(limits: Schema) -> Schema:
    return {
        "type": "array",
        "items": _object(shapes.OVERRIDE, {"limits": limits, "cluster_limits": limits}),
    }


def _group() -> Schema:
    limits = _limits() | _keys_of(USER)
    types = {"budget": limits, "minimum": limits, "overrides": _overrides(limits)}
    name = _NAME["anyOf"][0]
    member = _object(shapes.MEMBER, {USER: name, CLIENT_ID: name})
    member["anyOf"] = [{"required": [USER]}, {"required": [CLIENT_ID]}]
    types["members"] = {"type": "array", "items": member, "minItems": 1}
    return _object(shapes.GROUP, types)


def _named_limits(shape: shapes.Shape, types: Mapping[str, Schema]) -> Schema:
    """Return the schema of limits by the name of a profile or an owner."""
    entry = _object(shape, {**_list_limits(), **types}) | {"minProperties": 1}
    return {"type": "object", "propertyNames": NOTE.schema, "additionalProperties": entry}


def _silence() -> Schema:
    titles = [CODES[code].title for code in SILENCEABLE]
    codes = {"enum": list(SILENCEABLE), "enumDescriptions": titles}
    entry = _object(shapes.SILENCE, {"finding": codes})
    return {"type": "array", "items": entry}


def _keys_of(kind: str) -> Schema:
    keys = [key.name for key in QUOTA_KEYS.values() if kind in key.types]
    return {"propertyNames": {"enum": keys}}


def _limit(key: QuotaKey) -> Schema:
    of_bytes = [f"({'|'.join(BYTE_UNITS)})(/s)?"] if key.unit == BYTES else []
    units = "|".join([key.unit, *of_bytes])
    example = f"10 MiB, or {UNLIMITED}" if of_bytes else f"50, or {UNLIMITED}"
    wrong = f"Write a number in {key.unit}, with or without a unit: {example}."
    number_of = rf"(?=.*[1-9])(0|[1-9][0-9]*)(\.[0-9]+)?(\s*({units}))?"
    # One schema for numbers and texts: with anyOf, an editor explains the wrong alternative.
    return {
        "type": ["integer" if key.whole else "number", "string"],
        "exclusiveMinimum": 0,
        "maximum": int(key.largest),
        "pattern": rf"^\s*({UNLIMITED}|{number_of})\s*$",
        "patternErrorMessage": wrong,
    }
