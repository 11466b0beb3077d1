"""check by cases: files, and every problem in them with its place and its remedy."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from quota_ops.desired.read import read_cluster
from quota_ops.desired.schema import cluster_schema, quotas_schema
from quota_ops.desired.yaml import nodes
from quota_ops.desired.yaml.checkout import open_folder
from quota_ops.desired.yaml.source import Problems, read_source
from quota_ops.desired.yaml.values import is_plain
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Problem
from quota_ops.model.plans.placement import Placement
from quota_ops.model.quotas.rows import DesiredRow
from tests.yaml_cases import load_yaml

CASES = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases" / "check").glob("*.yaml"))
    for case in load_yaml(path.read_text("utf-8"))
)
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_COLUMNS = len(("entity", "key", "value", "owner", "reason", "file", "line"))
CLUSTER_YAML = f"cluster_id: {CLUSTER_ID}\nconnection: demo\n"


def files_of(case: Any) -> dict[str, str]:
    """Return the files of a case, with a cluster.yaml unless the case excludes it."""
    files = {"cluster.yaml": CLUSTER_YAML} | case["files"]
    return {name: text for name, text in files.items() if text is not None}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    return folder


def write(folder: Path, case: Any) -> None:
    """Write the files of a case unchanged, line endings included."""
    for name, text in files_of(case).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def read(folder: Path, case: Any) -> dict[str, Any]:
    """Return the result of check on a folder, in the form that the cases use."""
    try:
        brokers = case.get("brokers")
        if isinstance(brokers, dict):
            placement = Placement.from_json(brokers)
        else:
            placement = brokers and Placement.of_count(brokers)
        desired = read_cluster(folder, at=case.get("at")).divide(placement, folder)
    except InvalidDesiredState as error:
        return {"problems": [describe(problem, folder) for problem in error.problems]}
    return {"rows": [_spell(row) for row in desired.rows]}


def _spell(row: DesiredRow) -> list[Any]:
    """Return the columns of a row after the cluster, without the last ones that are null."""
    columns = list(row[1:])
    while len(columns) > _COLUMNS and columns[-1] is None:
        columns.pop()
    return columns


def describe(problem: Problem, folder: Path) -> Any:
    """Return a problem as text, or as the underlined part and the text."""
    text = f"{problem.place} {problem.message}"
    text = f"{text} {problem.remedy}" if problem.remedy else text
    text = text.replace(f"{folder}/", "")
    if problem.excerpt is None:
        return text
    start = problem.column - 1
    return {problem.excerpt[start : start + problem.length]: text}


@pytest.mark.parametrize("case", CASES)
def test_a_folder_gives_its_rows_or_every_problem(case: Any, folder: Path) -> None:
    """A folder gives all its rows, or every problem with place, underlined text and remedy."""
    write(folder, case)

    expected = {name: case[name] for name in ("rows", "problems") if name in case}
    assert expected == read(folder, case)


@pytest.mark.parametrize("case", CASES)
def test_the_pure_loader_reads_the_same(
    case: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without libyaml the same rows are read and the same files are rejected."""
    write(folder, case)
    expected = read(folder, case)
    monkeypatch.setattr(nodes, "LOADER", nodes.flat(yaml.BaseLoader))

    found = read(folder, case)

    if "rows" in case:
        assert expected == found
    else:
        assert set(map(_file_and_line, expected["problems"])) == set(
            map(_file_and_line, found["problems"])
        )


def _file_and_line(described: Any) -> tuple[str, ...]:
    text = described if isinstance(described, str) else next(iter(described.values()))
    return tuple(text.split(":")[:2])


@pytest.mark.parametrize("case", CASES)
def test_the_schemas_agree_with_check(case: Any, folder: Path) -> None:
    """A schema rejects each file that check rejects, except in cases that it cannot express.

    Those cases have `schema: blind`; a file that is not valid YAML counts as rejected.
    """
    write(folder, case)
    valid = True
    for path in (*folder.rglob("*.yaml"), *folder.rglob("*.yml")):
        with open_folder(path.parent, own=1) as opened:
            source = read_source(opened, path.name, Problems())
        root = nodes.compose(source) if source else None
        schema = cluster_schema() if path.name == "cluster.yaml" else quotas_schema()
        valid &= root is not None and Draft202012Validator(schema).is_valid(
            as_an_editor_reads(root)
        )

    assert valid == ("rows" in case or case.get("schema") == "blind")


CORE_SCHEMA: tuple[tuple[str, Callable[[str], Any]], ...] = (
    (r"null|Null|NULL|~|", lambda _: None),
    (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    (r"[-+]?[0-9]+", int),
    (r"0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, 0)),
    (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float),
    (r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", lambda text: float(text.replace(".", ""))),
)
"""How YAML 1.2 reads a plain scalar (https://yaml.org/spec/1.2.2, 10.3.2)."""


def as_an_editor_reads(node: yaml.Node) -> Any:
    """Convert a node to the value that a JSON Schema validator receives."""
    if isinstance(node, yaml.MappingNode):
        return {str(name.value): as_an_editor_reads(value) for name, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [as_an_editor_reads(item) for item in node.value]
    if is_plain(node):
        for pattern, make in CORE_SCHEMA:
            if re.fullmatch(pattern, node.value):
                return make(node.value)
    return node.value
