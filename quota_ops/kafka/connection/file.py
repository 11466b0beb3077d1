"""Reads a connection file: `name=value` lines in librdkafka's names, or one of Java's clients.

A file in which Java's names stand is read by Java's rules, and its settings are translated. In both
`${env:NAME}` and `${file:PATH}` stand for the content of an environment variable or a file, so
that the secret is elsewhere. A relative path is relative to the folder of the file. A message
names the place and the setting, never a value.
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
"""How a reference's name is written; any other that is not found may be the secret itself."""
_PEM = re.compile(r"(-----BEGIN [^-]+-----)([^-]*)(-----END [^-]+-----)\s*")
_SECURITY = ("sasl.", "ssl.", "security.", "enable.ssl.", "https.")


@dataclass(frozen=True, slots=True)
class Line:
    """A setting's value, where it was written, and the `${...}` in it, if there are any."""

    value: str = field(repr=False)
    place: str
    reference: str | None = None


def read_lines(text: str, *, source: str, folder: Path) -> dict[str, Line]:
    """The settings of a connection file by librdkafka's names, in its order.

    Raises InvalidInput at the first line that is no setting, sets something twice, is not known
    or not implemented, or refers to a variable or file that is not there.
    """
    text = text.removeprefix("\ufeff")
    written = _java_entries(text, source) or _entries(text, source)
    lines: dict[str, Line] = {}
    for entry in _in_librdkafkas_names(written):
        setting = _known(entry)
        if setting.name in lines:
            _refuse(entry.place, setting, f"is set already at {lines[setting.name].place}")
        resolved, references = _resolved(setting, entry.value, entry.place, folder)
        value = _fitting(setting, resolved, entry.place, folder)
        lines[setting.name] = Line(value, entry.place, references)
    return lines


def read_settings(settings: Mapping[str, str], *, source: str) -> dict[str, Line]:
    """The settings that stand elsewhere than in a file: every value is meant as it is written.

    Raises InvalidInput as `read_lines` does.
    """
    entries = [Entry(name, value, source) for name, value in settings.items()]
    lines: dict[str, Line] = {}
    for entry in _in_librdkafkas_names(entries):
        setting = _known(entry)
        value = _fitting(setting, entry.value, entry.place, Path())
        lines[setting.name] = Line(value, entry.place)
    return lines


def _in_librdkafkas_names(entries: Sequence[Entry]) -> Sequence[Entry]:
    if not any(entry.name.startswith(JAVA_NAMES) for entry in entries):
        return entries
    from quota_ops.kafka.connection.java_settings import translate_settings  # noqa: PLC0415 - few files are Java's

    return translate_settings(entries)


def _java_entries(text: str, source: str) -> list[Entry]:
    """What a file in the form of Kafka's Java clients says; nothing when it is none."""
    if not any(name in text for name in JAVA_NAMES):
        return []
    from quota_ops.kafka.connection import java_properties  # noqa: PLC0415 - few files are Java's

    if not any(name.startswith(JAVA_NAMES) for name in java_properties.list_java_names(text)):
        return []
    return list(java_properties.read_java(text, source=source))


def _entries(text: str, source: str) -> list[Entry]:
    """The lines of a file in librdkafka's form: a name, `=`, a value, and no escapes."""
    entries = []
    for number, written in enumerate(text.split("\n"), start=1):
        place = f"{source}:{number}"
        if not written.strip() or written.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in written.partition("="))
        if not equals:
            raise InvalidInput(
                f"{place}: not a setting.", "Write name=value, or # before a comment."
            )
        entries.append(Entry(name, value, place))
    return entries


def _known(entry: Entry) -> Setting:
    name, place = entry.name, entry.place
    setting = SETTINGS.get(ALIASES.get(name, name))
    if setting is not None:
        return setting
    from difflib import get_close_matches  # noqa: PLC0415 - only where something is wrong

    near = get_close_matches(name, [*SETTINGS, *ALIASES], n=1, cutoff=0.75)
    hint = f"Did you mean {near[0]}?" if near else f"What can be set: {', '.join(SETTINGS)}."
    if entry.shown != name:
        hint = "The name is not shown, because it may be part of a value."
    if name.startswith(_SECURITY):
        raise InvalidInput(
            f"{place}: {entry.shown} is a security setting that quota-ops does not know, "
            "so it connects nowhere rather than ignore it.",
            hint,
        )
    raise InvalidInput(f"{place}: {entry.shown} is not a setting of a connection.", hint)


def _resolved(setting: Setting, written: str, place: str, folder: Path) -> tuple[str, str | None]:
    """The value with every `${...}` replaced by its content, and those references."""

    def content(reference: re.Match[str]) -> str:
        kind, target = reference["kind"], reference["target"]
        if kind == "env" and target:
            return _variable(setting, target, place)
        if kind == "file" and target:
            return _content(setting, target, place, folder)
        _refuse_reference(setting, place)

    if "${" in _REFERENCE.sub(" ", written):
        _refuse_reference(setting, place)
    references = " ".join(match[0] for match in _REFERENCE.finditer(written))
    return _REFERENCE.sub(content, written), references or None


def _refuse_reference(setting: Setting, place: str) -> NoReturn:
    # What it holds is not shown: it may be a password that happens to look like this.
    raise InvalidInput(
        f"{place}: {setting.name} holds ${{...}}; known are ${{env:NAME}} and ${{file:PATH}}.",
        "A value that has it in itself belongs in a file of its own: ${file:PATH}.",
    )


def _fitting(setting: Setting, value: str, place: str, folder: Path) -> str:
    if not value:
        _refuse(place, setting, "has no value")
    if "\0" in value:
        _refuse(place, setting, "holds a NUL character")
    if setting.choices:
        return _choice(setting, value, place)
    if setting.is_file:
        return str(_existing(setting, folder / value, place))
    if setting.is_pem:
        return _pem(setting, value, place)
    return value


def _pem(setting: Setting, value: str, place: str) -> str:
    """A PEM text with its line ends, which Java's files may leave out."""
    if "-----BEGIN " not in value:
        _refuse(place, setting, "holds no PEM text, which begins with -----BEGIN")
    if "\n" in value:
        return value
    return _PEM.sub(lambda block: "\n".join([block[1], *block[2].split(), block[3], ""]), value)


def _variable(setting: Setting, name: str, place: str) -> str:
    if name not in os.environ:
        shown = f"the environment variable {name}," if _VARIABLE.fullmatch(name) else "a variable"
        _refuse(place, setting, f"needs {shown} which is not set")
    return os.environ[name]


def _content(setting: Setting, target: str, place: str, folder: Path) -> str:
    file = folder / target
    shown = "a file"
    try:
        if _FILE.fullmatch(target) or file.exists():
            shown = f"the file {file},"
        return _existing(setting, file, place, shown).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        _refuse(place, setting, f"needs {shown} which cannot be read: {reason}")


def _existing(setting: Setting, file: Path, place: str, shown: str | None = None) -> Path:
    if not file.is_file():
        why = "is no file" if file.exists() else "does not exist"
        _refuse(place, setting, f"needs {shown or f'the file {file},'} which {why}")
    return file


def _choice(setting: Setting, value: str, place: str) -> str:
    chosen = [choice for choice in setting.choices if choice.casefold() == value.casefold()]
    if not chosen:
        raise InvalidInput(
            f"{place}: {setting.name} must be one of {', '.join(setting.choices)}.",
            NOT_OFFERED.get(value.upper()),
        )
    return chosen[0]


def _refuse(place: str, setting: Setting, what: str) -> NoReturn:
    raise InvalidInput(f"{place}: {setting.name} {what}.")
