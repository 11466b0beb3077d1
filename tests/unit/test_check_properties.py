"""check for any input: names survive unchanged, and a schema accepts whatever check accepts."""

import re
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from quota_ops.desired.read import read_cluster
from quota_ops.desired.schema import quotas_schema
from quota_ops.desired.yaml import nodes
from quota_ops.desired.yaml.values import Misread, read_text
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, parse_limit

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ENTITIES = (
    st.fixed_dictionaries({}, optional={USER: NAMES | st.none(), CLIENT_ID: NAMES | st.none()})
    .filter(bool)
    .map(Entity.of)
)
QUOTAS = Draft202012Validator(quotas_schema())


def entities_of(text: str) -> list[str]:
    """Return the entities that a quotas file declares."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "cluster.yaml").write_text("cluster_id: a\nconnection: b\n")
        (folder / "team.yaml").write_bytes(text.encode())
        return [row.entity for row in read_cluster(folder).rows]


def quoted(name: str | None) -> str:
    """Return a name in double quotes with all YAML escapes, or the default."""
    if name is None:
        return "{default: true}"
    return yaml.safe_dump(name, default_style='"', width=10_000).strip()


@given(st.lists(ENTITIES, unique=True, max_size=5))
def test_any_name_in_quotes_is_read_as_it_is(entities: list[Entity]) -> None:
    """Entities of any name, written in quotes, are read as the same entities."""
    text = "owner: a\nquotas:\n"
    for entity in entities:
        fields = "".join(f"{kind}: {quoted(name)}, " for kind, name in entity.parts)
        text += f"  - {{{fields}limits: {{request_percentage: 1}}}}\n"

    assert entities_of(text if entities else f"{text}  []") == [one.text for one in entities]


DEMO = (Path(__file__).parents[2] / "desired_state/demo/payments.yaml").read_text("utf-8")
PIECES = st.sampled_from(
    (*"*[]{}#%@'\"\\\0\x85\ufeff\r\t\n🚀", "&a ", "*a", "!!x ", ": ", "- ", "---\n", "? ", "<<: *a")
)


@given(st.lists(st.tuples(st.integers(0, len(DEMO)), st.integers(0, 40), PIECES), max_size=5))
def test_any_edit_gives_rows_or_problems_inside_the_file(edits: list[tuple[int, int, str]]) -> None:
    """After any edit of a file, check gives rows, or problems at places inside the file."""
    text = DEMO
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    try:
        entities_of(text)
    except InvalidDesiredState as error:
        lines = re.split("\r\n|\n|\r", text)
        for problem in error.problems:
            assert problem.column <= len(lines[problem.line - 1]) + 1


@given(st.text("0123456789_:.-+eExXobnyNaOf~=< tTulrsI", min_size=1, max_size=12))
def test_what_a_yaml_reader_resolves_must_be_quoted(text: str) -> None:
    """A plain scalar that PyYAML resolves to another type is never read as text."""
    resolver = yaml.SafeLoader("")
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if tag != resolver.DEFAULT_SCALAR_TAG:
        with pytest.raises(Misread):
            read_text("user", yaml.ScalarNode("", text, style=None))
    assert read_text("user", yaml.ScalarNode("", text, style='"')) == text


@given(
    st.sampled_from(sorted(QUOTA_KEYS)),
    st.from_regex(r"[0-9]{1,18}(\.[0-9]{1,3})?( ?(B|kB|MiB/s|GB/s|%|bytes/s))? ?", fullmatch=True),
)
def test_a_schema_takes_every_limit_that_check_takes(key: str, text: str) -> None:
    """A limit that check reads is valid to the schema, in quotes and as a number."""
    try:
        value = parse_limit(QUOTA_KEYS[key], text)
    except ValueError:
        return
    name = {"ip": "10.0.0.1"} if IP in QUOTA_KEYS[key].types else {"user": "a"}
    for limit in (text, value):
        QUOTAS.validate({"owner": "a", "quotas": [name | {"limits": {key: limit}}]})


def test_half_a_character_is_refused_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone surrogate, which only the pure loader accepts, is not a valid name."""
    monkeypatch.setattr(nodes, "LOADER", nodes.flat(yaml.BaseLoader))

    with pytest.raises(InvalidDesiredState, match="user contains half of a surrogate pair"):
        entities_of('owner: a\nquotas: [{user: "\\ud83d", limits: {request_percentage: 1}}]\n')


def test_deep_nesting_is_refused_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pure loader, too, stops before Python's recursion limit."""
    monkeypatch.setattr(nodes, "LOADER", nodes.flat(yaml.BaseLoader))

    with pytest.raises(InvalidDesiredState, match="This is nested more than 20 levels deep"):
        entities_of("[" * 10_000)
