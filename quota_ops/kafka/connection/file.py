"""Reads a connection file: `name=value` lines with librdkafka's names, or a Java client's file.

A file with Java's names is read by Java's rules, and its settings are translated. In both,
`${env:NAME}` and `${file:PATH}` are replaced by the content of an environment variable or a file,
which keeps secrets out of the connection file. A relative path is relative to the folder of the
file. Error messages name the place and the setting, never a value.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from quota_ops.kafka.connection.settings import (
    ALIASES,
    JAVA_NAMES,
    NOT_OFFERED,
    SETTINGS,
    Entry,
    Setting,
)
from quota_ops.model.errors import InvalidInput

_REFERENCE = re.compile(r"\$\{(?P<kind>[^:}]*):?(?P<target>[^}]*)\}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,59}")
_FILE = re.compile(r"[a-z0-9._/-]{1,100}")
"""The names that a message may show; any other name may be a secret, typed by mistake."""
_PEM = re.compile(r"(-----BEGIN [^-]+-----)([^-]*)(-----END [^-]+-----)\s*")
_SECURITY = ("sasl.", "ssl.", "security.", "enable.ssl.", "https.")


@dataclass(frozen=True, slots=True)
class Line:
    """A setting's value, its place, and the `${...}` references in it."""

    value: str = field(repr=False)
    place: str
    reference: str | None = None


def read_lines(text: str, *, source: str, folder: Path) -> dict[str, Line]:
    """Return the settings of a connection file by librdkafka's names, in the order of the file.

    Raises InvalidInput at the first line that is not a setting, repeats one, sets an unknown or
    unsupported one, or refers to a variable or file that does not exist.
    """
    text = text.removeprefix("\ufeff")
    written = _read_java_entries(text, source) or _read_entries(text, source)
    lines: dict[str, Line] = {}
    for entry in _rename_entries(written):
        setting = _find_setting(entry)
        if setting.name in lines:
            _refuse(entry.place, setting, f"is already set at {lines[setting.name].place}")
        resolved, references = _resolve(setting, entry.value, entry.place, folder)
        value = _check_value(setting, resolved, entry.place, folder)
        lines[setting.name] = Line(value, entry.place, references)
    return lines


def read_settings(settings: Mapping[str, str], *, source: str) -> dict[str, Line]:
    """Return settings from another source by librdkafka's names, without replacing `${...}`.

    Raises InvalidInput as `read_lines` does.
    """
    entries = [Entry(name, value, source) for name, value in settings.items()]
    lines: dict[str, Line] = {}
    for entry in _rename_entries(entries):
        setting = _find_setting(entry)
        value = _check_value(setting, entry.value, entry.place, Path())
        lines[setting.name] = Line(value, entry.place)
    return lines


def _rename_entries(entries: Sequence[Entry]) -> Sequence[Entry]:
    if not any(entry.name.startswith(JAVA_NAMES) for entry in entries):
        return entries
    from quota_ops.kafka.connection.java_settings import translate_settings  # noqa: PLC0415 - few files are Java's

    return translate_settings(entries)


def _read_java_entries(text: str, source: str) -> list[Entry]:
    """Return the entries of a file of Kafka's Java clients; an empty list for any other file."""
    if not any(name in text for name in JAVA_NAMES):
        return []
    from quota_ops.kafka.connection import java_properties  # noqa: PLC0415 - few files are Java's

    if not any(name.startswith(JAVA_NAMES) for name in java_properties.list_java_names(text)):
        return []
    return list(java_properties.read_java(text, source=source))


def _read_entries(text: str, source: str) -> list[Entry]:
    """Return the entries of a file in librdkafka's format: `name=value` lines without escapes."""
    entries = []
    for number, written in enumerate(text.split("\n"), start=1):
        place = f"{source}:{number}"
        if not written.strip() or written.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in written.partition("="))
        if not equals:
            raise InvalidInput(
                f"{place}: not a setting.", "Write name=value, or begin a comment with #."
            )
        entries.append(Entry(name, value, place))
    return entries


def _find_setting(entry: Entry) -> Setting:
    name, place = entry.name, entry.place
    setting = SETTINGS.get(ALIASES.get(name, name))
    if setting is not None:
        return setting
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

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


def _resolve(setting: Setting, written: str, place: str, folder: Path) -> tuple[str, str | None]:
    """Return the value with every `${...}` replaced by its content, and the references."""

    def read_content(reference: re.Match[str]) -> str:
        kind, target = reference["kind"], reference["target"]
        if kind == "env" and target:
            return _read_variable(setting, target, place)
        if kind == "file" and target:
            return _read_file(setting, target, place, folder)
        _refuse_reference(setting, place)

    if "${" in _REFERENCE.sub(" ", written):
        _refuse_reference(setting, place)
    references = " ".join(match[0] for match in _REFERENCE.finditer(written))
    return _REFERENCE.sub(read_content, written), references or None


def _refuse_reference(setting: Setting, place: str) -> NoReturn:
    # The value is not shown: it may be a password that happens to contain ${...}.
    raise InvalidInput(
        f"{place}: {setting.name} contains ${{...}}; "
        "the known forms are ${env:NAME} and ${file:PATH}.",
        "Put a value that contains ${ into a file of its own, and write ${file:PATH}.",
    )


def _check_value(setting: Setting, value: str, place: str, folder: Path) -> str:
    if not value:
        _refuse(place, setting, "has no value")
    if "\0" in value:
        _refuse(place, setting, "contains a NUL character")
    if setting.choices:
        return _choose(setting, value, place)
    if setting.is_file:
        return str(_check_file(setting, folder / value, place))
    if setting.is_pem:
        return _format_pem(setting, value, place)
    return value


def _format_pem(setting: Setting, value: str, place: str) -> str:
    """Return a PEM text with its line breaks, which Java's files may omit."""
    if "-----BEGIN " not in value:
        _refuse(place, setting, "contains no PEM text, which begins with -----BEGIN")
    if "\n" in value:
        return value
    return _PEM.sub(lambda block: "\n".join([block[1], *block[2].split(), block[3], ""]), value)


def _read_variable(setting: Setting, name: str, place: str) -> str:
    if name not in os.environ:
        shown = f"the environment variable {name}," if _VARIABLE.fullmatch(name) else "a variable"
        _refuse(place, setting, f"refers to {shown} which is not set")
    return os.environ[name]


def _read_file(setting: Setting, target: str, place: str, folder: Path) -> str:
    file = folder / target
    shown = "a file"
    try:
        if _FILE.fullmatch(target) or file.exists():
            shown = f"the file {file},"
        return _check_file(setting, file, place, shown).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        _refuse(place, setting, f"refers to {shown} which cannot be read: {reason}")


def _check_file(setting: Setting, file: Path, place: str, shown: str | None = None) -> Path:
    if not file.is_file():
        why = "is not a file" if file.exists() else "does not exist"
        _refuse(place, setting, f"refers to {shown or f'the file {file},'} which {why}")
    return file


def _choose(setting: Setting, value: str, place: str) -> str:
    chosen = [choice for choice in setting.choices if choice.casefold() == value.casefold()]
    if not chosen:
        raise InvalidInput(
            f"{place}: {setting.name} must be one of {', '.join(setting.choices)}.",
            NOT_OFFERED.get(value.upper()),
        )
    return chosen[0]


def _refuse(place: str, setting: Setting, what: str) -> NoReturn:
    raise InvalidInput(f"{place}: {setting.name} {what}.")
