"""Quotas in the files of other tools, each as a cluster would store it, with its file and line."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import yaml

from quota_ops.desired.yaml.nodes import LOADER
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.model.tool import Tool

_TLS = ("tls", "tls-external")
_CAMEL = {re.sub("_([a-z])", lambda found: found[1].upper(), key): key for key in CLIENT_KEYS}
"""The keys of Kafka as Strimzi and jikkou spell them."""
_JIKKOU_TYPES: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "USER": ((USER, True),),
    "USERS_DEFAULT": ((USER, False),),
    "USER_CLIENT": ((USER, True), (CLIENT_ID, True)),
    "USER_ALL_CLIENTS": ((USER, True), (CLIENT_ID, False)),
    "CLIENT": ((CLIENT_ID, True),),
    "CLIENTS_DEFAULT": ((CLIENT_ID, False),),
}
"""The entity of each type of jikkou's KafkaClientQuotaType, and which parts have a name."""
_JIKKOU_NAMES = {USER: "user", CLIENT_ID: "clientId"}
_TERRAFORM_STATE = 4
_NOUNS = {"user-principal": USER, "client-id": CLIENT_ID, "ip": IP}
_CREDENTIALS = "SCRAM credential configs for "
_BEGINNINGS = ("Quota configs for ", _CREDENTIALS)
_DESCRIBED = re.compile(r"Quota configs for (?P<who>.+) are (?P<values>[a-z_.]+=.*)", re.DOTALL)
_PART = re.compile(rf"the default (?P<default>{'|'.join(_NOUNS)})|(?P<noun>{'|'.join(_NOUNS)}) '")


class _Found(NamedTuple):
    """A value of an entity, and its place."""

    entity: Entity
    key: str
    value: float
    place: str


def read_foreign_files(files: Iterable[tuple[Tool, Path]]) -> tuple[StoredQuota, ...]:
    """Return the quotas in the files of other tools.

    Raises InvalidInput with file and line for the first content that is not known exactly, for a
    value that two places give, and for a file without quotas.
    """
    places: dict[Key, _Found] = {}
    for tool, path in files:
        quotas = list(_READERS[tool](_File(str(path), _read(path))))
        if not quotas:
            raise InvalidInput(
                f"{path} contains no quotas of {tool}", "Pass the files that contain quotas."
            )
        for found in quotas:
            other = places.setdefault(Key(found.entity.text, found.key), found)
            if other is not found:
                raise InvalidInput(
                    f"{found.place}: {found.entity.text} {found.key} is also in {other.place}",
                    "Remove one of them.",
                )
    return tuple(StoredQuota(found.entity, found.key, found.value) for found in places.values())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8") from None


class _File(NamedTuple):
    """The text of a file, and what its nodes contain."""

    path: str
    text: str

    def place(self, node: yaml.Node) -> str:
        return f"{self.path}:{node.start_mark.line + 1}"

    def refuse(self, node: yaml.Node, why: str, remedy: str | None = None) -> NoReturn:
        raise InvalidInput(f"{self.place(node)}: {why}", remedy)

    def documents(self) -> Sequence[yaml.Node]:
        """Return the documents of a file of YAML or JSON."""
        try:
            return [node for node in yaml.compose_all(self.text, Loader=LOADER) if node is not None]
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise InvalidInput(f"{self.path}:{line}: not YAML or JSON: {error.problem}") from None
        except yaml.YAMLError as error:
            raise InvalidInput(f"{self.path}: not YAML or JSON: {error}") from None

    def fields(self, node: yaml.Node, *known: str) -> dict[str, yaml.Node]:
        """Return the fields of a mapping; only the known ones, if any are given."""
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, "expected a mapping")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value in found:
                self.refuse(key, f"{key.value} is there twice")
            if known and key.value not in known:
                self.refuse(key, f"unknown field {key.value}", f"Known are {', '.join(known)}.")
            found[key.value] = value
        return found

    def field(self, node: yaml.Node, *names: str) -> yaml.Node | None:
        """Return what is below nested fields; None if one of them is missing or null."""
        found: yaml.Node | None = node
        for name in names:
            found = self.fields(found).get(name) if found is not None else None
            if found is not None and self.is_null(found):
                return None
        return found

    def is_null(self, node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and not node.style and node.value in {"", "null"}

    def items(self, node: yaml.Node | None) -> Sequence[yaml.Node]:
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(node, "expected a list")
        return list(node.value)

    def name(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.refuse(node, "expected a name")
        return str(node.value)

    def resources(self, kind: str) -> Iterator[yaml.Node]:
        """Yield the resources of a kind, including those in a list of resources."""
        for document in self.documents():
            found = self.field(document, "kind")
            if found is not None and found.value == kind:
                yield document
            elif found is not None and found.value in {"List", f"{kind}List"}:
                for item in self.items(self.field(document, "items")):
                    inner = self.field(item, "kind")
                    if inner is None or inner.value == kind:
                        yield item

    def values(
        self, entity: Entity, node: yaml.Node | None, names: Mapping[str, str]
    ) -> Iterator[_Found]:
        """Yield the value of each key; `names` are the keys of Kafka as the tool spells them."""
        for name, value in (self.fields(node, *names) if node is not None else {}).items():
            if self.is_null(value):
                continue
            number = _parse(value.value) if isinstance(value, yaml.ScalarNode) else None
            if number is None:
                self.refuse(value, f"{name} is not a number greater than 0")
            yield _Found(entity, names[name], number, self.place(value))


def _parse(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if number <= 0 else number


def _read_strimzi(file: _File) -> Iterator[_Found]:
    """Yield the quotas of KafkaUser resources; a certificate makes the user `CN=NAME`."""
    for user in file.resources("KafkaUser"):
        if (quotas := file.field(user, "spec", "quotas")) is None:
            continue
        if (named := file.field(user, "metadata", "name")) is None:
            file.refuse(user, "a KafkaUser without metadata.name")
        login, name = file.field(user, "spec", "authentication", "type"), file.name(named)
        entity = Entity.of({USER: f"CN={name}" if login and login.value in _TLS else name})
        yield from file.values(entity, quotas, _CAMEL)


def _read_jikkou(file: _File) -> Iterator[_Found]:
    for quota in file.resources("KafkaClientQuota"):
        if (kind := file.field(quota, "spec", "type")) is None:
            file.refuse(quota, "a KafkaClientQuota without spec.type")
        if (parts := _JIKKOU_TYPES.get(file.name(kind))) is None:
            file.refuse(
                kind, f"unknown type {kind.value}", f"Known are {', '.join(_JIKKOU_TYPES)}."
            )
        names: dict[str, str | None] = {}
        for part, is_named in parts:
            named = file.field(quota, "spec", "entity", _JIKKOU_NAMES[part])
            if is_named is (named is None):
                must = "needs" if is_named else "must not have"
                file.refuse(quota, f"type {kind.value} {must} entity.{_JIKKOU_NAMES[part]}")
            names[part] = None if named is None else file.name(named)
        yield from file.values(Entity.of(names), file.field(quota, "spec", "configs"), _CAMEL)


def _read_terraform(file: _File) -> Iterator[_Found]:
    for state in file.documents():
        version = file.field(state, "version")
        if version is None or version.value != str(_TERRAFORM_STATE):
            file.refuse(state, f"not a Terraform state of version {_TERRAFORM_STATE}", _PULL)
        for resource in file.items(file.field(state, "resources")):
            kind, mode = file.field(resource, "type"), file.field(resource, "mode")
            if kind is None or mode is None or mode.value != "managed":
                continue
            if kind.value not in {"kafka_quota", "kafka_quota_composite"}:
                continue
            for instance in file.items(file.field(resource, "instances")):
                if (attributes := file.field(instance, "attributes")) is None:
                    file.refuse(instance, f"an instance of {kind.value} without attributes", _PULL)
                entity = _read_terraform_entity(file, attributes, kind.value)
                names = {key: key for key in QUOTA_KEYS}
                yield from file.values(entity, file.field(attributes, "config"), names)


_PULL = "Write the file with: terraform state pull > terraform.tfstate"


def _read_terraform_entity(file: _File, attributes: yaml.Node, kind: str) -> Entity:
    """Return the entity of a resource; a part without a name is the default."""
    if kind == "kafka_quota":
        parts = [(file.field(attributes, "entity_type"), file.field(attributes, "entity_name"))]
    else:
        entities = file.items(file.field(attributes, "entity"))
        parts = [(file.field(part, "type"), file.field(part, "name")) for part in entities]
    names: dict[str, str | None] = {}
    for type_, name in parts:
        if type_ is None or type_.value not in ENTITY_TYPES or type_.value in names:
            file.refuse(attributes, f"{kind} has an unknown or repeated entity type")
        names[type_.value] = name.value if name is not None and name.value else None
    if kind == "kafka_quota" and None in names.values():
        file.refuse(attributes, "kafka_quota has no entity_name")
    return Entity.of(names)


def _read_kafka_configs(file: _File) -> Iterator[_Found]:
    for number, entry in _split_entries(file.text):
        place = f"{file.path}:{number}"
        if entry.startswith(_CREDENTIALS):
            continue
        found = _DESCRIBED.fullmatch(entry)
        names = _read_described_entity(found["who"]) if found else None
        if found is None or names is None:
            raise InvalidInput(
                f"{place}: not a line of kafka-configs.sh --describe about a quota",
                "Write the file with: kafka-configs.sh --describe --entity-type users "
                "--entity-type clients",
            )
        for assignment in found["values"].split(", "):
            key, _, text = assignment.partition("=")
            value = _parse(text)
            if key not in QUOTA_KEYS or value is None:
                raise InvalidInput(
                    f"{place}: {assignment} is not a quota",
                    f"The keys of quotas are {', '.join(QUOTA_KEYS)}.",
                )
            yield _Found(Entity.of(names), key, value, place)


def _split_entries(text: str) -> list[tuple[int, str]]:
    """Return the lines that are not blank, by number; a name may contain line ends."""
    entries: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        last = entries[-1][1] if entries else ""
        is_open = last.startswith(_BEGINNINGS[0]) and _DESCRIBED.fullmatch(last) is None
        if is_open and not line.startswith(_BEGINNINGS):
            entries[-1] = (entries[-1][0], f"{entries[-1][1]}\n{line}")
        elif line.strip():
            entries.append((number, line.removesuffix("\r")))
    return entries


def _read_described_entity(who: str) -> dict[str, str | None] | None:
    """Return the names of `user-principal 'alice', the default client-id`; None if it is not one.

    Kafka escapes no quote in a name, so a name ends at the first quote behind which only known
    parts follow.
    """
    names: dict[str, str | None] = {}
    while who:
        if (part := _PART.match(who)) is None:
            return None
        if part["default"]:
            kind, name, rest = _NOUNS[part["default"]], None, who[part.end() :]
        else:
            kind = _NOUNS[part["noun"]]
            name, rest = _split_name(who[part.end() :])
            if name is None:
                return None
        if kind in names or (rest and not rest.startswith(", ")):
            return None
        names[kind], who = name, rest.removeprefix(", ")
    return names or None


def _split_name(text: str) -> tuple[str | None, str]:
    """Return a name, and what is behind its closing quote: nothing, or another part."""
    ends = [found.start() for found in re.finditer("'", text)]
    for end in ends:
        rest = text[end + 1 :]
        if not rest or (rest.startswith(", ") and _read_described_entity(rest[2:]) is not None):
            return text[:end], rest
    return None, ""


_READERS: Mapping[Tool, Callable[[_File], Iterator[_Found]]] = {
    Tool.STRIMZI: _read_strimzi,
    Tool.JIKKOU: _read_jikkou,
    Tool.TERRAFORM: _read_terraform,
    Tool.KAFKA_CONFIGS: _read_kafka_configs,
}
