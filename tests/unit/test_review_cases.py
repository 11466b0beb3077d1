"""The comment and the exit code of a review, from YAML cases, on files alone."""

import json
import re
import shlex
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from quota_ops.ci import comment
from quota_ops.desired.git.repository import Repository
from quota_ops.report.review.comment import MARKER
from tests.calling import call_cli
from tests.comments_api import OWN, TOKEN, serve_comments
from tests.repositories import commit_all, git, head
from tests.yaml_cases import load_yaml

CASES = [
    pytest.param(case, id=case["name"])
    for file in sorted((Path(__file__).parents[1] / "cases" / "review").glob("*.yaml"))
    for case in load_yaml(file.read_text("utf-8"))
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


def make_branch(
    root: Path,
    base: dict[str, str | None],
    changed: dict[str, str | None],
    main: dict[str, str | None] | None = None,
) -> None:
    """Create a repository with a commit on main and one on the checked-out branch.

    `main` is what main has changed since.
    """
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    write_files(root, base)
    commit_all(root)
    git(root, "checkout", "--quiet", "-b", "branch")
    if changed:
        write_files(root, changed)
        commit_all(root)
    if main:
        git(root, "checkout", "--quiet", "main")
        write_files(root, main)
        commit_all(root)
        git(root, "checkout", "--quiet", "branch")


def normalize(root: Path, text: str) -> str:
    """Replace what differs in each run: hashes, and the folder of the test."""
    names = {head(root)[:7]: "HEAD", git(root, "merge-base", "main", "HEAD")[:7]: "BASE"}
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
    make_branch(root, case["base"], case["head"], case.get("main"))

    ended = call_cli(["review", "--files-only", "--out", str(out)], {"HOME": str(tmp_path)}, root)

    assert (ended.returncode, ended.stderr) == (case["exit"], "")
    assert normalize(root, ended.stdout) == f"{case['comment']}\nreview: {out}\n"
    assert list_results(out) == case["annotations"]


def test_a_removal_that_one_of_two_merge_bases_hides_is_no_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of criss-cross merges, the comment and the exit code show what the merge would change."""
    root, home = tmp_path / "repository", {"HOME": str(tmp_path)}
    team = "owner: a\nquotas:\n  - user: {0}\n    limits: {{producer_byte_rate: 1 MiB}}\n"
    cluster = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
    base: dict[str, str | None] = {
        "demo/cluster.yaml": cluster,
        "demo/a.yaml": team.format("alice"),
    }
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T00:00:00Z")
    make_branch(root, base, {"demo/c.yaml": team.format("carol")})
    added = head(root)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
    git(root, "checkout", "--quiet", "main")
    write_files(root, {"demo/b.yaml": team.format("bob")})
    also_added = commit_all(root)
    git(root, "merge", "--quiet", "-m", "main has both", added)
    git(root, "checkout", "--quiet", "branch")
    git(root, "merge", "--quiet", "-m", "branch has both", also_added)
    write_files(root, {"demo/b.yaml": None})
    commit_all(root)
    crossed = git(root, "merge-base", "--all", "main", "branch").splitlines()

    ended = call_cli(["review", "--files-only"], home, root)
    with monkeypatch.context() as git_2_37:
        git_2_37.setattr(Repository, "merge_tree", lambda *_: None)
        refused = call_cli(["review", "--files-only"], home, root)
    git(root, "merge", "--quiet", "-m", "branch has main", "main")
    merged = call_cli(["review", "--files-only"], home, root)

    assert crossed == [added, also_added]
    assert ended.returncode == 6
    assert ended.stdout.partition("** ·")[0] == (
        "**quota-ops · ❔ `demo` cannot be judged: merging it changes other values than this "
        "branch alone"
    )
    assert "changes other values than this branch alone: `user=bob producer_byte_rate`\n" in (
        ended.stdout
    )
    assert refused.returncode == 6
    assert refused.stderr == (
        "main and HEAD have several merge bases, and Git is older than 2.38, so the result of the "
        "merge was not read\n  Merge main into this branch, and run the review again.\n"
    )
    assert (merged.returncode, merged.stdout.count("| ⚠ | user `bob` |")) == (1, 1)


def test_files_beside_a_damaged_ledger(tmp_path: Path) -> None:
    """A review of files alone reads no ledger, so a damaged one does not change its verdict."""
    root, home = tmp_path / "repository", {"HOME": str(tmp_path)}
    team = "owner: a\nquotas:\n  - user: bob\n    limits: {{producer_byte_rate: {0} MiB}}\n"
    cluster = "cluster_id: x\nconnection: demo\n"
    make_branch(
        root,
        {"demo/cluster.yaml": cluster, "demo/a.yaml": team.format(1)},
        {"demo/a.yaml": team.format(2)},
    )
    before = call_cli(["review", "--files-only"], home, root)
    ledger = tmp_path / ".local/state/quota-ops/store/ledger/x"
    ledger.mkdir(parents=True)
    (ledger / "00000001.parquet").write_bytes(b"damaged")

    ended = call_cli(["review", "--files-only"], home, root)

    assert (ended.returncode, ended.stdout) == (0, before.stdout)


def test_an_error_of_several_lines_has_no_escapes(tmp_path: Path) -> None:
    """A comment shows each line of the reason and the remedy, and an annotation all as one line."""
    root, out, usual = tmp_path / "repository", tmp_path / "out", CASES[0].values[0]
    make_branch(root, usual["base"], usual["head"])  # type: ignore[index]

    ended = call_cli(["review", "--out", str(out)], {"HOME": str(tmp_path)}, root)

    first = "Run `quota-ops sandbox start`: it starts a Kafka on this machine and writes that file."
    second = "For your own cluster, write the file yourself, for example:"
    assert ended.returncode == 6
    assert f"\n<br>``{first}``<br>`{second}`<br>`bootstrap.servers=" in ended.stdout
    (issue,) = json.loads((out / "code-quality.json").read_text("utf-8"))
    assert f"does not exist. {first} {second} bootstrap.servers=" in issue["description"]
    assert ["\\n" in text for text in (ended.stdout, issue["description"])] == [False, False]


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
    with serve_comments(f"{MARKER}\n**quota-ops · ✅ 18 changes**", author=OWN) as api:
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
        "`Run git fetch origin '+refs/heads/*:refs/remotes/origin/*', or pass another commit with "
        "--base.`\n\n"
        "Nothing is known about the changes of this commit.\n"
    )


def test_a_comment_that_was_not_written_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the code host is down or drips, the verdict on an earlier commit stays: the job is red.

    No response is waited for longer than its time limit, however often a byte of it arrives.
    """
    root, out, event = tmp_path / "repository", tmp_path / "out", tmp_path / "event.json"
    usual = CASES[0].values[0]
    make_branch(root, usual["base"], usual["head"])  # type: ignore[index]
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": head(root)}}}))
    with serve_comments() as api:
        address = api.address
    variables = {
        "HOME": str(tmp_path),
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_API_URL": address,
        "GITHUB_TOKEN": TOKEN,
    }
    review = ["review", "--files-only", "--comment", "--base", "main", "--out", str(out)]

    ended = call_cli(review, variables, root)

    assert ended.returncode == 2
    assert ended.stderr == (
        f"the comment was not written: GET {address}/user failed: Connection refused\n"
        "  Check that this job reaches that address, and run it again. Its log has the comment.\n"
    )
    assert "**quota-ops · ✅ 1 change on `demo`**" in ended.stdout
    assert json.loads((out / "review.json").read_text())["exit_code"] == 2
    assert "exit-code=2\n" in (tmp_path / "outputs").read_text()

    monkeypatch.setattr(comment, "_PATIENCE", 0.5)
    with serve_drops() as slow:
        late = call_cli(review[:-2], variables | {"GITHUB_API_URL": slow}, root)
    why = f"GET {slow}/user failed: there was no complete response within 0.5 s"
    assert late.returncode == 2
    assert late.stderr.startswith(f"the comment was not written: {why}\n")


@contextmanager
def serve_drops() -> Iterator[str]:
    """Serve two responses, a byte every tenth of a second for three seconds; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            for _ in range(2):
                client, _address = server.accept()
                with client, suppress(OSError):
                    for _ in range(30):
                        client.sendall(b"H")
                        time.sleep(0.1)

        dripping = Thread(target=drip)
        dripping.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        dripping.join()


@pytest.mark.parametrize(
    ("event", "variables"),
    [
        ({"merge_group": {"base_sha": "BEFORE"}}, {}),
        ({"before": "BEFORE"}, {}),
        ({}, {"GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": "BEFORE"}),
    ],
    ids=["merge queue", "push to main", "push to main on GitLab"],
)
def test_what_two_green_branches_break_together_is_red(
    event: dict[str, Any], variables: dict[str, str], tmp_path: Path
) -> None:
    """The job on the merge queue and on main compares with the commit before, and finds it."""
    root, file = tmp_path / "repository", tmp_path / "event.json"
    one, other = (
        f"owner: {team}\nquotas:\n  - user: carol\n    limits: {{producer_byte_rate: 1 MiB}}\n"
        for team in ("search", "logs")
    )
    usual = CASES[0].values[0]["base"]  # type: ignore[index]
    make_branch(root, usual, {"demo/a.yaml": one}, {"demo/b.yaml": other})
    git(root, "checkout", "--quiet", "main")
    before = head(root)
    git(root, "merge", "--quiet", "-m", "both", "branch")
    file.write_text(json.dumps(event).replace("BEFORE", before))
    variables = {name: value.replace("BEFORE", before) for name, value in variables.items()}
    if event:
        variables |= {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(file)}

    ended = call_cli(["review", "--files-only"], {"HOME": str(tmp_path), **variables}, root)

    assert ended.returncode == 2
    assert "user=carol is declared twice" in ended.stdout
    assert f"compared with `{before[:7]}`" in ended.stdout


def test_findings_are_those_of_the_merged_files(tmp_path: Path) -> None:
    """A finding that only both branches together have is told, at the branch's row, and only once.

    One that the target takes away is none.
    """
    root, text = tmp_path / "repository", "owner: {}\nquotas:\n  - user: carol{}\n    limits: {}\n"
    rate, every = "{producer_byte_rate: 1 MiB}", "\n    client-id: {default: true}"
    one, other = text.format("search", "", rate), text.format("logs", every, rate)
    usual = CASES[0].values[0]["base"]  # type: ignore[index]
    make_branch(root, usual, {"demo/a.yaml": one}, {"demo/b.yaml": other})

    behind = call_cli(["review", "--files-only"], {"HOME": str(tmp_path)}, root).stdout
    git(root, "merge", "--quiet", "-m", "both", "main")
    merged = call_cli(["review", "--files-only"], {"HOME": str(tmp_path)}, root).stdout
    git(root, "checkout", "--quiet", "main")
    (root / "desired_state" / "demo" / "b.yaml").unlink()
    commit_all(root)
    git(root, "checkout", "--quiet", "branch")
    undone = call_cli(["review", "--files-only"], {"HOME": str(tmp_path)}, root).stdout

    found = "producer_byte_rate of user=carol applies only to clients without a client id"
    assert f"- QO106 `a.yaml:4`: `After the merge: {found}" in behind, behind
    assert re.search(f"- QO106 `a.yaml:4:[0-9]+`: `{found}", merged), merged
    assert [shown.count("QO106") for shown in (behind, merged, undone)] == [1, 1, 0], undone


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


def test_only_what_differs_is_a_change(tmp_path: Path) -> None:
    """A moved desired state is compared with its earlier folder; a merged commit with nothing."""
    root, out = tmp_path / "repository", tmp_path / "out"
    files: dict[str, str | None] = {
        "demo/cluster.yaml": "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n",
        "demo/team.yaml": (
            "owner: team\nquotas:\n  - {user: bob, limits: {producer_byte_rate: 1 MiB}}\n"
        ),
    }
    make_branch(root, files, {"demo/more.yaml": "owner: team\nquotas: []\n"})
    git(root, "mv", "desired_state", "quotas")
    (root / "quotas" / "demo" / "more.yaml").write_text(
        "owner: team\nquotas:\n  - {user: carol, limits: {producer_byte_rate: 1 MiB}}\n"
    )
    commit_all(root)

    review = ("review", "--files-only", "--desired-state", "quotas")
    moved = call_cli([*review, "--out", str(out)], {"HOME": str(tmp_path)}, root)
    merged = call_cli([*review, "--base", "HEAD"], {"HOME": str(tmp_path)}, root)

    assert moved.returncode == 0, moved.stdout
    assert moved.stdout.startswith("**quota-ops · ✅ 1 change on `demo`** · commit")
    words = "The folder of the desired state was `desired_state/` in the merge base.\n"
    assert words in moved.stdout
    assert merged.stdout.startswith(
        "**quota-ops · nothing to compare: the target branch has this commit already** · commit"
    )


def test_objects_that_a_clone_lacks_are_the_cause(tmp_path: Path) -> None:
    """In a partial clone whose remote is gone, the remedy is about its objects, not its commit."""
    root, clone = tmp_path / "repository", tmp_path / "clone"
    make_branch(root, {"demo/cluster.yaml": "a"}, {"demo/cluster.yaml": "b"})
    git(root, "config", "uploadpack.allowFilter", "true")
    options = ("--quiet", "--filter=blob:none", "--branch=branch")
    git(tmp_path, "clone", *options, f"file://{root}", str(clone))
    root.rename(tmp_path / "gone")

    ended = call_cli(
        ["review", "--files-only", "--base", "origin/main"], {"HOME": str(tmp_path)}, clone
    )

    assert ended.returncode == 2
    assert f"Git cannot read the commits of {clone}" in ended.stderr
    assert "or use a clone without --filter and --depth." in ended.stderr


@pytest.mark.parametrize(
    "target",
    [
        {"arguments": ("--base", "origin/main")},
        {"arguments": ("--base", "main")},
        {},
        {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main"},
        {"GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
    ],
)
def test_a_tag_is_not_taken_for_the_target(tmp_path: Path, target: dict[str, Any]) -> None:
    """A tag with the name of the target branch does not replace it, fetched or not."""
    root, clone, one = (tmp_path / name for name in ("repository", "clone", "one-branch"))
    make_branch(root, {"demo/cluster.yaml": "a"}, {"demo/cluster.yaml": "b"})
    names = ("main", "origin/main", "origin/HEAD", "refs/remotes/origin/main")
    for name in names:
        git(root, "tag", name, "branch")
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    git(tmp_path, "clone", "--quiet", str(root), str(clone))
    git(clone, "checkout", "--quiet", "-b", "branch", "refs/remotes/origin/branch")
    single = ("--quiet", "--single-branch", "--branch=branch", str(root), str(one))
    git(tmp_path, "clone", *single)
    git(one, "fetch", "--quiet", "--tags")
    arguments = ("review", "--files-only", *target.pop("arguments", ()))

    ended = call_cli(arguments, {"HOME": str(tmp_path), **target}, clone)
    alone = call_cli(arguments, {"HOME": str(tmp_path), **target}, one)

    assert "nothing to compare" not in ended.stdout + alone.stdout
    assert git(clone, "rev-parse", "refs/heads/main")[:7] in ended.stdout
    assert (alone.returncode, "demo" in alone.stdout) == (2, False)


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
        f"  Fetch the history: {deep}, or pass another commit with --base.\n",
        ("repository", "--base", "nosuch"): "this checkout has no commit named nosuch to compare "
        f"with\n  Run git fetch {every}, or pass another commit with --base.\n",
        ("repository", "--desired-state", "gone"): "gone is not a folder, so there is no branch to "
        "review\n  Run this in a checkout, or pass the folder with --desired-state. If the branch "
        "removes the last cluster: its quotas stay on the cluster, unmanaged. To see that in the "
        "review, keep the folder, for example with a README.md in it.\n",
        ("repository", "--desired-state", "/usr/lib"): "/usr/lib is not in a Git checkout, so "
        "there is no branch to review\n"
        "  Run this in a checkout, or pass the folder with --desired-state.\n",
    }

    ended = {error: call_cli(["review", *error[1:]], home, tmp_path / error[0]) for error in errors}

    assert {one: run.stderr for one, run in ended.items()} == errors
    assert {run.returncode for run in ended.values()} == {2}
    for name in ("shallow", "one-branch"):
        git(tmp_path / name, "fetch", "--quiet", "--unshallow", *shlex.split(every))
        fetched = call_cli(["review", "--files-only"], home, tmp_path / name)
        assert fetched.stdout.startswith("**quota-ops · ❌ ")  # compared: its YAML is invalid
