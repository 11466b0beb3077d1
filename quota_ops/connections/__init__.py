"""Connection files: where they are, their `name=value` lines, and the `${...}` in them.

`${env:NAME}` and `${file:PATH}` are replaced by the content of an environment variable or a file,
which keeps secrets out of the connection file. Error messages name the place and the setting, never
a value.
"""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple, NoReturn, Self

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import CONNECTION_NAME, CONNECTION_RULE

_log = logging.getLogger(__name__)
_REFERENCE = re.compile(r"\$\{(?P<kind>[^:}]*):?(?P<target>[^}]*)\}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,59}")
_FILE = re.compile(r"[a-z0-9._/-]{1,100}")
"""The names that a message may show; any other name may be a secret, typed by mistake."""
_LIKE_A_SETTING = re.compile(r"(?=[^.]*\.)[a-z0-9._-]{1,60}|acks|retries|debug")
"""The form of client setting names, and the few names without a dot."""


class Entry(NamedTuple):
    """A setting as the file contains it: name, value, and place (`demo.properties:3`)."""

    name: str
    value: str
    place: str

    @property
    def shown(self) -> str:
        """Return the name for a message, unless it may be part of a secret split in two."""
        return self.name if _LIKE_A_SETTING.fullmatch(self.name) else "this name"

    def __repr__(self) -> str:
        return f"Entry({self.shown!r}, {self.place!r})"


@dataclass(frozen=True, slots=True)
class Line:
    """A setting's value, its place, and the `${...}` references in it."""

    value: str = field(repr=False)
    place: str
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved settings of a connection; `repr` shows no value, and pickling it fails.

    `source` is the path of the file, or the name of another source of the settings. A subclass
    says what its settings may be.
    """

    name: str
    source: str
    lines: Mapping[str, Line] = field(repr=False)

    @classmethod
    def find(
        cls,
        name: str,
        example: str,
        *,
        file: Path | None = None,
        first: str | None = None,
        before: str | None = None,
        remedy: str = "Write that file",
    ) -> Self:
        """Find a connection by name, and read its file.

        It is `file` if given; else the file whose path is in QUOTA_OPS_CONNECTION_NAME, if set;
        else NAME.properties in `connections_folder()`. Raises InvalidInput when there is none, or
        when it cannot be read. The error begins with `first`, or with `before`, if that names a
        place that the caller searched, and ends with the remedy and the example.
        """
        if before:
            first = f"{before}  not defined or readable"
            remedy = f"Define {before}, or write that file"
        text, found = _read_connection(name, f"{remedy}, for example:\n{example}", file, first)
        return cls.parse(text, name=name, source=str(found), folder=found.parent)

    @classmethod
    def parse(cls, text: str, *, name: str, source: str, folder: Path | None = None) -> Self:
        """Parse a connection file's text. Raises InvalidInput with the invalid line.

        Relative paths are relative to `folder`, by default the current folder.
        """
        lines = cls.resolve(cls.read_entries(text, source), source, folder or Path())
        return cls(name, source, lines)

    @classmethod
    def of(cls, settings: Mapping[str, str], *, name: str, source: str) -> Self:
        """Build a connection from settings that are not in a file, without replacing `${...}`.

        Raises InvalidInput with the source, as `parse` does.
        """
        entries = [Entry(setting, value, source) for setting, value in settings.items()]
        return cls(name, source, cls.resolve(entries, source, None))

    @staticmethod
    def read_entries(text: str, source: str) -> Sequence[Entry]:
        """Return the entries of a file. Raises InvalidInput at the first line that is none."""
        return read_entries(text, source)

    @staticmethod
    def resolve(entries: Sequence[Entry], source: str, folder: Path | None) -> Mapping[str, Line]:
        """Return the settings; `${...}` is replaced in a file of `folder`, and only there."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a connection contains secrets, so it cannot be pickled; find it again by name"
        )


def connections_folder() -> Path:
    """Return the folder of the connection files: $QUOTA_OPS_CONNECTIONS, or a user folder."""
    if chosen := os.environ.get("QUOTA_OPS_CONNECTIONS"):
        return Path(chosen)
    from platformdirs import user_config_path  # only without a chosen folder

    return user_config_path("quota-ops") / "connections"


def _read_connection(
    name: str, example: str, file: Path | None, first: str | None
) -> tuple[str, Path]:
    """Find the file of a connection by name; return its text and its path."""
    if not CONNECTION_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a connection name.", f"A name {CONNECTION_RULE}.")
    if file is not None:
        return _read(name, file, "given as --connection")
    variable = "QUOTA_OPS_CONNECTION_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    if path := os.environ.get(variable):
        return _read(name, Path(path), f"named by ${variable}")
    usual = connections_folder() / f"{name}.properties"
    if _may_exist(usual):
        return _read(name, usual, "of that name")
    there = ", ".join(sorted(path.name for path in usual.parent.glob("*.properties")))
    missing = f"{usual}  does not exist{f'; there are {there}' if there else ''}"
    searched = [*([first] if first else []), f"${variable}  not set", missing]
    raise InvalidInput(
        "\n    ".join([f"there is no connection {name}. Searched:", *searched]), example
    )


def _may_exist(file: Path) -> bool:
    """Return whether a file exists or denies access; reading it then raises the reason."""
    try:
        return file.exists()
    except OSError:
        return True


def _read(name: str, file: Path, why: str) -> tuple[str, Path]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"connection {name}: {file} is not UTF-8.") from None
    except OSError as error:
        raise InvalidInput(
            f"connection {name}: cannot read {file}, {why}: {error.strerror}."
        ) from None
    _log.info("connection %s: read %s", name, file)
    return text, file


def read_entries(text: str, source: str) -> list[Entry]:
    """Return the entries of a connection file: `name=value` lines without escapes."""
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


def resolve_references(entry: Entry, folder: Path | None) -> tuple[str, str | None]:
    """Return the value of a setting with every `${...}` replaced, and the references.

    A value that is not from a file, and so has no folder, is returned as it is.
    """
    if folder is None:
        return entry.value, None
    name, written, place = entry

    def read_content(reference: re.Match[str]) -> str:
        kind, target = reference["kind"], reference["target"]
        if kind == "env" and target:
            return _read_variable(name, target, place)
        if kind == "file" and target:
            return _read_file(name, target, place, folder)
        _refuse_reference(name, place)

    if "${" in _REFERENCE.sub(" ", written):
        _refuse_reference(name, place)
    references = " ".join(match[0] for match in _REFERENCE.finditer(written))
    return _REFERENCE.sub(read_content, written), references or None


def _refuse_reference(name: str, place: str) -> NoReturn:
    # The value is not shown: it may be a password that happens to contain ${...}.
    raise InvalidInput(
        f"{place}: {name} contains ${{...}}; the known forms are ${{env:NAME}} and ${{file:PATH}}.",
        "Put a value that contains ${ into a file of its own, and write ${file:PATH}.",
    )


def _read_variable(name: str, variable: str, place: str) -> str:
    if variable not in os.environ:
        is_shown = _VARIABLE.fullmatch(variable)
        shown = f"the environment variable {variable}," if is_shown else "a variable"
        refuse(place, name, f"refers to {shown} which is not set")
    return os.environ[variable]


def _read_file(name: str, target: str, place: str, folder: Path) -> str:
    file = folder / target
    shown = "a file"
    try:
        if _FILE.fullmatch(target) or file.exists():
            shown = f"the file {file},"
        return find_file(name, file, place, shown).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        refuse(place, name, f"refers to {shown} which cannot be read: {reason}")


def find_file(name: str, file: Path, place: str, shown: str | None = None) -> Path:
    """Return a file that a setting refers to. Raises InvalidInput if there is none."""
    if not file.is_file():
        why = "is not a file" if file.exists() else "does not exist"
        refuse(place, name, f"refers to {shown or f'the file {file},'} which {why}")
    return file


def refuse(place: str, name: str, what: str) -> NoReturn:
    """Raise InvalidInput about a setting, without its value."""
    raise InvalidInput(f"{place}: {name} {what}.")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself, where a secret may be sent without TLS."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
