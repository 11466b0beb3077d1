"""Reads a connection file: `name=value` lines with librdkafka's names, or a Java client's file.

A file with Java's names is read by Java's rules, and its settings are translated. A relative path
is relative to the folder of the file.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from quota_ops.connections import Entry, Line, find_file, read_entries, refuse, resolve_references
from quota_ops.kafka.connection.rules import check_together
from quota_ops.kafka.connection.settings import ALIASES, JAVA_NAMES, NOT_OFFERED, SETTINGS, Setting
from quota_ops.model.errors import InvalidInput

_PEM = re.compile(r"(-----BEGIN [^-]+-----)([^-]*)(-----END [^-]+-----)\s*")
_SECURITY = ("sasl.", "ssl.", "security.", "enable.ssl.", "https.")


def read_file(text: str, source: str) -> Sequence[Entry]:
    """Return the settings of a connection file as it has them.

    Raises InvalidInput at the first line that is not a setting.
    """
    text = text.removeprefix("\ufeff")
    return _read_java_entries(text, source) or list(read_entries(text, source))


def resolve_settings(entries: Sequence[Entry], source: str, folder: Path | None) -> dict[str, Line]:
    """Return the settings by librdkafka's names, in their order.

    In a file of `folder`, `${...}` is replaced; settings from elsewhere have no folder.
    Raises InvalidInput at the first one that repeats another, is unknown or unsupported, or refers
    to a variable or file that does not exist, and for settings that do not fit together.
    """
    lines: dict[str, Line] = {}
    for entry in _rename_entries(entries):
        setting = _find_setting(entry)
        if setting.name in lines:
            refuse(entry.place, setting.name, f"is already set at {lines[setting.name].place}")
        value, references = resolve_references(entry._replace(name=setting.name), folder)
        value = _check_value(setting, value, entry.place, folder or Path())
        lines[setting.name] = Line(value, entry.place, references)
    check_together(lines, source)
    return lines


def _rename_entries(entries: Sequence[Entry]) -> Sequence[Entry]:
    if not any(entry.name.startswith(JAVA_NAMES) for entry in entries):
        return entries
    from quota_ops.kafka.connection.java_settings import translate_settings  # few files are Java's

    return translate_settings(entries)


def _read_java_entries(text: str, source: str) -> list[Entry]:
    """Return the entries of a file of Kafka's Java clients; an empty list for any other file."""
    if not any(name in text for name in JAVA_NAMES):
        return []
    from quota_ops.kafka.connection import java_properties  # few files are Java's

    if not any(name.startswith(JAVA_NAMES) for name in java_properties.list_java_names(text)):
        return []
    return list(java_properties.read_java(text, source=source))


def _find_setting(entry: Entry) -> Setting:
    name, place = entry.name, entry.place
    setting = SETTINGS.get(ALIASES.get(name, name))
    if setting is not None:
        return setting
    from difflib import get_close_matches  # only for an error

    near = get_close_matches(name, [*SETTINGS, *ALIASES], n=1, cutoff=0.75)
    hint = f"Did you mean {near[0]}?" if near else f"The known settings are {', '.join(SETTINGS)}."
    if entry.shown != name:
        hint = "The name is not shown, because it may be part of a secret."
    if name.startswith(_SECURITY):
        raise InvalidInput(
            f"{place}: {entry.shown} is an unknown security setting; "
            "quota-ops does not connect rather than ignore it.",
            hint,
        )
    raise InvalidInput(f"{place}: {entry.shown} is not a setting of a connection.", hint)


def _check_value(setting: Setting, value: str, place: str, folder: Path) -> str:
    if not value:
        refuse(place, setting.name, "has no value")
    if "\0" in value:
        refuse(place, setting.name, "contains a NUL character")
    if setting.choices:
        return _choose(setting, value, place)
    if setting.is_file:
        return str(find_file(setting.name, folder / value, place))
    if setting.is_pem:
        return _format_pem(setting, value, place)
    return value


def _format_pem(setting: Setting, value: str, place: str) -> str:
    """Return a PEM text with its line breaks, which Java's files may omit."""
    if "-----BEGIN " not in value:
        refuse(place, setting.name, "contains no PEM text, which begins with -----BEGIN")
    if "\n" in value:
        return value
    return _PEM.sub(lambda block: "\n".join([block[1], *block[2].split(), block[3], ""]), value)


def _choose(setting: Setting, value: str, place: str) -> str:
    chosen = [choice for choice in setting.choices if choice.casefold() == value.casefold()]
    if not chosen:
        raise InvalidInput(
            f"{place}: {setting.name} must be one of {', '.join(setting.choices)}.",
            NOT_OFFERED.get(value.upper()),
        )
    return chosen[0]
