"""Findings by cases: probable mistakes, where they are, and who silenced them."""

from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.read import read_cluster
from quota_ops.findings.codes import CODES, DecidedBy
from quota_ops.findings.silences import list_unsilenced
from quota_ops.model.finding import Finding, InvalidFile
from tests.yaml_cases import load_yaml

CASES = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases" / "findings").glob("*.yaml"))
    for case in load_yaml(path.read_text("utf-8"))
)
CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"


AT = "2026-11-30T00:00:00Z"
"""The time that decides on temporary limits."""


def found(folder: Path, files: dict[str, str]) -> tuple[Finding, ...]:
    """Return the findings of a cluster's files."""
    for name, text in ({"cluster.yaml": CLUSTER_YAML} | files).items():
        (folder / name).write_text(text, "utf-8")
    return read_cluster(folder, at=AT).findings


def told(finding: Finding) -> str:
    """Return a finding in the form that the cases use."""
    text = f"{finding.where} {finding.code} {finding.message} {finding.remedy}"
    return text if finding.silenced is None else f"{text} [silenced: {finding.silenced}]"


@pytest.mark.parametrize("case", CASES)
def test_files_give_rise_to_findings(case: Any, tmp_path: Path) -> None:
    """Files give all their findings, each with place, text and remedy, and no others."""
    findings = found(tmp_path, case["files"])

    assert sorted(map(told, findings)) == case["findings"]
    assert sorted(map(told, list_unsilenced(findings))) == [
        one for one in case["findings"] if "[silenced: " not in one
    ]


OF_FILES = [one for one in CODES.values() if one.decided_by is not DecidedBy.BROKERS]


@pytest.mark.parametrize("code", OF_FILES, ids=lambda code: code.code)
def test_an_example_gives_rise_to_its_finding(code: Any, tmp_path: Path) -> None:
    """The files that explain a finding produce it, and no other."""
    cluster, _, team = code.example.partition("# team.yaml")
    if not code.example.startswith("# cluster.yaml"):
        cluster, team = "", code.example
    files = {"cluster.yaml": CLUSTER_YAML + cluster, "team.yaml": f"owner: team\nquotas:\n{team}\n"}
    if not team:
        del files["team.yaml"]

    findings = found(tmp_path, files)

    assert [(finding.code, finding.silenced) for finding in findings] == [(code.code, None)]


def test_what_an_invalid_file_says() -> None:
    """It names the file, its owner if that is known, a problem, and how many there are."""
    one = InvalidFile("a.yaml", None, 1, "The file is empty.", 1)

    assert one.text == "a.yaml is invalid: line 1: The file is empty."
    assert one._replace(owner="search", problems=2).text == (
        "a.yaml (owner search) is invalid: line 1: The file is empty. (2 problems)"
    )
