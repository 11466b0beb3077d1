"""The comment and the exit code of a review, from YAML cases, on files alone."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from quota_ops.report.review.comment import MARKER
from tests.calling import call_cli
from tests.comments_api import TOKEN, serve_comments
from tests.repositories import commit_all, git, head

CASES = [
    pytest.param(case, id=case["name"])
    for file in sorted((Path(__file__).parents[1] / "cases" / "review").glob("*.yaml"))
    for case in yaml.safe_load(file.read_text("utf-8"))
]


def write_files(root: Path, files: dict[str, str | None]) -> None:
    """Write the files below desired_state; null removes one."""
    for name, text in files.items():
        path = root / "desired_state" / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def make_branch(root: Path, base: dict[str, str | None], changed: dict[str, str | None]) -> None:
    """Create a repository with a commit on main and one on the checked-out branch."""
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    write_files(root, base)
    commit_all(root)
    git(root, "checkout", "--quiet", "-b", "branch")
    if changed:
        write_files(root, changed)
        commit_all(root)


def normalize(root: Path, text: str) -> str:
    """Replace what differs in each run: hashes, and the folder of the test."""
    names = {head(root)[:7]: "HEAD", git(root, "rev-parse", "main")[:7]: "BASE"}
    for commit, name in names.items():
        text = text.replace(commit, name)
    return re.sub(r"Plan `[0-9a-f]{8}`", "Plan `PLAN`", text).replace(str(root), "ROOT")


def list_results(folder: Path) -> list[str]:
    """Return the results of the SARIF file of a review: `warning desired_state/a.yaml:4 cut`."""
    found = []
    for one in json.loads((folder / "review.sarif").read_text())["runs"][0]["results"]:
        place = one["locations"][0]["physicalLocation"]
        where = f"{place['artifactLocation']['uri']}:{place['region']['startLine']}"
        found.append(f"{one['level']} {where} {one['ruleId']}")
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_review_of_files(case: dict[str, Any], tmp_path: Path) -> None:
    """A branch has this comment, these annotations and this exit code, without a cluster."""
    root, out = tmp_path / "repository", tmp_path / "out"
    make_branch(root, case["base"], case["head"])

    ended = call_cli(["review", "--files-only", "--out", str(out)], {"HOME": str(tmp_path)}, root)

    assert (ended.returncode, ended.stderr) == (case["exit"], "")
    assert normalize(root, ended.stdout) == f"{case['comment']}\nreview: {out}\n"
    assert list_results(out) == case["annotations"]


def test_a_link_in_place_of_a_cluster_is_a_problem(tmp_path: Path) -> None:
    """The review rejects what check would reject after the merge."""
    root = tmp_path / "repository"
    make_branch(root, {"demo/team.yaml": "owner: a"}, {})
    (root / "desired_state" / "other").symlink_to("/root")
    commit_all(root)

    ended = call_cli(["review", "--files-only"], {"HOME": str(tmp_path)}, root)

    assert (ended.returncode, ended.stdout.partition("** ·")[0]) == (
        2,
        "**quota-ops · ❌ 1 problem in the YAML files of `other`",
    )
    assert "This is a link, and quota-ops follows no links." in ended.stdout


def test_a_failed_review_replaces_the_comment_on_an_earlier_commit(tmp_path: Path) -> None:
    """No verdict on another commit stays in the pull request, and comment.md says why."""
    root, out, event = tmp_path / "repository", tmp_path / "out", tmp_path / "event.json"
    make_branch(root, {"demo/cluster.yaml": "cluster_id: x"}, {})
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": head(root)}}}))
    with serve_comments(f"{MARKER}\n**quota-ops · ✅ 18 changes**") as api:
        variables = {
            "HOME": str(tmp_path),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": api.address,
            "GITHUB_TOKEN": TOKEN,
        }
        arguments = ["review", "--comment", "--base", "nowhere", "--out", str(out)]
        ended = call_cli(arguments, variables, root)

    assert ended.returncode == 2
    assert api.methods == ["GET", "PATCH"]
    assert api.comments == {0: (out / "comment.md").read_text("utf-8")}
    assert api.comments[0] == (
        f"{MARKER}\n**quota-ops · ❌ the review failed** · commit `{head(root)[:7]}`\n\n"
        "`this checkout has no commit named nowhere to compare with`<br>"
        "`Run git fetch origin '+refs/heads/*:refs/remotes/origin/*', or name another commit with "
        "--base.`\n\n"
        "Nothing is known about the changes of this commit.\n"
    )
    green = ["review", "--files-only", "--base", "main"]
    write_files(root, {"demo/cluster.yaml": "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo"})
    quiet = call_cli(green, variables, root)
    down = call_cli([*green, "--comment"], variables, root)  # the server has ended
    assert down.stderr.splitlines()[0].endswith("&page=1 failed: Connection refused")
    assert (quiet.returncode, down.returncode) == (0, 2)


def test_what_is_not_committed_is_reviewed_and_named(tmp_path: Path) -> None:
    """Before a commit, the changes of the files count, and the heading names one of them."""
    root, usual = tmp_path / "repository", CASES[0].values[0]
    make_branch(root, usual["base"], {})  # type: ignore[index]
    write_files(root, {"demo/new.yaml": usual["head"]["demo/team.yaml"]})  # type: ignore[index]
    (root / "desired_state" / "demo" / "team.yaml").unlink()

    ended = call_cli(["review", "--files-only"], {"HOME": str(tmp_path)}, root)

    heading = normalize(root, ended.stdout).partition("\n")[0].split(" · ")
    assert (ended.returncode, *heading[1:]) == (
        0,
        "✅ 1 change on `demo`**",
        "uncommitted changes in `new.yaml` and 1 more since BASE",
        "compared with `BASE`",
    )


def test_a_missing_merge_base_is_explained(tmp_path: Path) -> None:
    """A shallow clone, an unknown target and a folder outside Git are errors with a remedy."""
    root, home = tmp_path / "repository", {"HOME": str(tmp_path)}
    make_branch(root, {"demo/cluster.yaml": "a"}, {"demo/cluster.yaml": "b"})
    git(root, "checkout", "--quiet", "main")  # as on a host, where HEAD is the usual branch
    for name in ("shallow", "one-branch"):
        git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "branch", root.as_uri(), name)
    git(tmp_path / "shallow", "fetch", "--quiet", "--depth", "1", "origin", "main:main")
    every = "origin '+refs/heads/*:refs/remotes/origin/*'"
    deep = (
        "on GitHub fetch-depth: 0 in actions/checkout, on GitLab GIT_DEPTH: 0, elsewhere git fetch "
        f"--unshallow {every}"
    )
    errors = {
        ("shallow", "--base", "main"): "this clone is shallow: it lacks the merge base of HEAD and "
        f"main\n  Fetch the history: {deep}.\n",
        ("one-branch",): "this checkout has no commit named origin/HEAD or origin/main or "
        "origin/master or main or master to compare with\n"
        f"  Fetch the history: {deep}, or name another commit with --base.\n",
        ("repository", "--base", "nosuch"): "this checkout has no commit named nosuch to compare "
        f"with\n  Run git fetch {every}, or name another commit with --base.\n",
        ("repository", "--desired-state", "gone"): "gone is not a folder, so there is no branch to "
        "review\n  Run this in a checkout, or name the folder with --desired-state. If the branch "
        "removes the last cluster: its quotas stay on the cluster, unmanaged. To see that in the "
        "review, keep the folder, for example with a README.md in it.\n",
        ("repository", "--desired-state", "/usr/lib"): "/usr/lib is not in a Git checkout, so "
        "there is no branch to review\n"
        "  Run this in a checkout, or name the folder with --desired-state.\n",
    }

    ended = {one: call_cli(["review", *one[1:]], home, tmp_path / one[0]) for one in errors}

    assert {one: run.stderr for one, run in ended.items()} == errors
    assert {run.returncode for run in ended.values()} == {2}
    for name in ("shallow", "one-branch"):
        git(tmp_path / name, "fetch", "--quiet", "--unshallow", *shlex.split(every))
        fetched = call_cli(["review", "--files-only"], home, tmp_path / name)
        assert fetched.stdout.startswith("**quota-ops · ❌ ")  # compared: its YAML is invalid
