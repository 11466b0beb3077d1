"""CODEOWNERS: who approves a path, and where that differs from cluster.yaml."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired.code_owners import find_names, read_rules
from tests.repositories import git

FILE = """\
# comment
*            @all
*.md         @writers  # at any depth
/a/          @folder
/a/*         @direct
b/*.yaml     @yaml
/c/**/d.yaml @deep
e            @name
/with\\ blank @blank
/nobody
[Other][2] @usual
/o.yaml
"""


@pytest.mark.parametrize(
    ("path", "names", "line"),
    [
        ("x.yaml", "@all", 2),
        ("deep/in/x.md", "@writers", 3),
        ("a/b/c.yaml", "@folder", 4),
        ("a/c.yaml", "@direct", 5),
        ("b/c.yaml", "@yaml", 6),
        ("x/b/c.yaml", "@all", 2),
        ("c/d.yaml", "@deep", 7),
        ("c/x/y/d.yaml", "@deep", 7),
        ("x/e/y.yaml", "@name", 8),
        ("with blank", "@blank", 9),
        ("nobody", "", 10),
        ("o.yaml", "@all @usual", 12),
    ],
)
def test_who_approves_a_path(path: str, names: str, line: int) -> None:
    """The last rule that matches decides, in each section of GitLab."""
    assert find_names(list(read_rules(FILE)), path) == (frozenset(names.split()), line)


def test_what_init_writes_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The starter passes check in Git, with its placeholder as a finding.

    Other approvers, and none of cluster.yaml, are problems.
    """
    monkeypatch.chdir(tmp_path)
    begun = CliRunner().invoke(main, ["init", ".", "--cluster-id", "x"])
    git(tmp_path, "init", "--quiet")
    agreed = CliRunner().invoke(main, ["check"])
    rules = tmp_path / "CODEOWNERS"
    rules.write_text("/desired_state/main/ @OWNER/my-team @OWNER/search\n")
    differs = CliRunner().invoke(main, ["check"])
    (tmp_path / "empty.jsonl").write_text('{"schema": 1, "cluster_id": "x"}\n')
    run = ["plan", "main", "--actual", "empty.jsonl", "--run-store", f"{tmp_path}-store"]
    planned = CliRunner().invoke(main, run)
    rules.unlink()
    missing = CliRunner().invoke(main, ["check"])

    assert (begun.exit_code, agreed.exit_code) == (0, 0)
    assert agreed.output == (
        "desired_state/main/cluster.yaml:26:47  QO122 warning  @OWNER/my-team is a placeholder: no "
        "team of the code host has this name. Write the team that approves, here and in "
        "CODEOWNERS.\n"
        "quota-ops findings CODE explains a code, and how to silence it.\n"
        "main: 2 quotas in 2 files, no problems, 1 finding\n"
    )
    assert (differs.exit_code, missing.exit_code) == (2, 2)
    problem = (
        "CODEOWNERS:1:1  @OWNER/my-team @OWNER/search approves changes of "
        "desired_state/main/team.yaml; cluster.yaml lists @OWNER/my-team for my-team."
    )
    assert (problem in differs.output, problem in planned.output) == (True, True), planned.output
    assert (
        "approves changes of desired_state/main/cluster.yaml, which declares the owners"
        in differs.output
    )
    assert "the repository has no CODEOWNERS" in missing.output
    go_on = "Runs report this too, and apply what the quotas files declare.\n"
    assert [ended.output.endswith(go_on) for ended in (differs, missing)] == [True, True]
