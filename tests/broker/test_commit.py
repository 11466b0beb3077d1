"""The commit of a run's files, and runs without one."""

import json
import os
import re
from typing import Any

import pytest

from quota_ops.model.plans.guard import Guard
from quota_ops.runs.chain import run_stages
from quota_ops.store.ledger import ledger
from quota_ops.store.run.files import CHANGES, PAGE, PLAN, TEXT
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import guards
from tests.lab import Lab
from tests.repositories import commit_all, git, head
from tests.writing import State

KEY = "producer_byte_rate"
LINK = re.compile(r'<a href="((?:https:|\.\.)[^"]*)">')
FIRST: State = {"user=alice": {KEY: 10e6}}
SECOND: State = {"user=alice": {KEY: 20e6}}
THIRD: State = {"user=alice": {KEY: 15e6}}
ALICE = ("--names", "user=alice")
TEMPORARY = """\
owner: team
quotas:
  - user: alice
    limits: {{producer_byte_rate: {}}}
    overrides:
      - {{until: 2999-01-01T00:00Z, limits: {{producer_byte_rate: 10000000}}, reason: a sale}}
"""
REFUSAL = """\
#!/bin/sh
echo "fatal: detected dubious ownership in repository at '/srv'
To add an exception for this directory, call:

	git config --global --add safe.directory /srv" >&2
exit 128
"""
WHY = "Git cannot determine the commit of {}: detected dubious ownership in repository at '/srv'"


@pytest.fixture(name="repository")
def _repository(lab: Lab) -> Lab:
    """Create a lab whose desired state is a Git repository of one commit, which declares FIRST."""
    lab.desire(FIRST)
    git(lab.folder.parent, "init", "--quiet")
    commit_all(lab.folder.parent)
    return lab


@pytest.fixture
def refusing(repository: Lab) -> dict[str, str]:
    """Return an environment in which Git refuses the repository, as another user's."""
    binary = repository.root / "bin" / "git"
    binary.parent.mkdir()
    binary.write_text(REFUSAL)
    binary.chmod(0o700)
    return {"PATH": f"{binary.parent}:{os.environ['PATH']}"}


def apply_commit(repository: Lab, state: State | None = None, **policy: Any) -> str:
    """Commit a state, if one is given, and return the commit that a reconcile has applied."""
    if state is not None:
        repository.desire(state, **policy)
        commit_all(repository.folder.parent)
    ended = repository.call("reconcile", "demo")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return head(repository.folder)


def branch_off(repository: Lab, state: State = THIRD) -> str:
    """Commit a state beside all that came after the first commit, and return the new commit."""
    first = git(repository.folder, "rev-list", "--max-parents=0", "HEAD")
    git(repository.folder, "checkout", "--quiet", first)
    repository.desire(state)
    return commit_all(repository.folder.parent)


def forget_other_commits(repository: Lab) -> None:
    """Delete what no branch contains, nor the commit that is checked out."""
    git(repository.folder, "reflog", "expire", "--expire=now", "--all")
    git(repository.folder, "gc", "--quiet", "--prune=now")


def hold_alice(repository: Lab) -> None:
    """Hold the only user for two hours."""
    hold = ("--until", "2h", "--reason", "night")
    assert repository.call("hold", "demo", *ALICE, *hold).returncode == 0


def test_a_commit_that_was_read_is_recorded(repository: Lab) -> None:
    """The commit of a reconcile is on its screen, in the ledger and in `runs`."""
    commit = head(repository.folder)
    ended = repository.call("reconcile", "demo", "--allow", "takeover", "--reason", "first")

    assert ended.returncode == 0, ended.stderr
    assert f") at {commit[:7]}  " in ended.stdout
    assert ledger.read(repository.records).notes.commits == (commit,)
    shown = repository.call("runs", "demo").stdout
    assert commit[:7] in shown


def test_pages_link_to_the_commit_its_lines_and_the_report_before(repository: Lab) -> None:
    """A page links each row to its line at the commit, below the root of the repository.

    It also links to the commit and to the report before, and a changed row to the commit that set
    it last; uncommitted files have no link, and a plan has no report.
    """
    host = "https://github.com/acme/quotas"
    repository.desire(FIRST, repository=host)
    commit = commit_all(repository.folder.parent)
    pages = []
    for _ in range(2):
        assert repository.call("reconcile", "demo").returncode == 0
        pages.append((repository.runs[-1].place / PAGE).read().decode())
    repository.desire(SECOND, repository=host)
    repository.call("plan", "demo")
    repository.call("report", "demo")

    links = [LINK.findall(page) for page in pages]
    assert links[0] == [f"{host}/commit/{commit}", f"{host}/blob/{commit}/demo/team.yaml#L4"]
    assert links[1] == [f"{host}/commit/{commit}", f"../{repository.runs[0].place.name}/{PAGE}"]
    last = (repository.runs[-1].place / PAGE).read().decode()
    assert LINK.findall(last) == [
        f"../{repository.runs[1].place.name}/{PAGE}",
        f"{host}/commit/{commit}",
    ]


def test_uncommitted_changes_of_an_old_checkout(repository: Lab) -> None:
    """A plan names the uncommitted file, and guard went_back knows the commit it is based on."""
    first = apply_commit(repository)
    apply_commit(repository, SECOND)
    git(repository.folder, "checkout", "--quiet", first)
    with (repository.folder / "team.yaml").open("a") as file:
        file.write("# more\n")

    plan = repository.call("plan", "demo")

    assert f") with uncommitted changes in team.yaml since {first[:7]}  " in plan.stdout
    assert f"{Guard.WENT_BACK}: commit {first[:7]} was applied before" in plan.stdout
    assert plan.returncode == 1


def test_a_branch_without_the_last_applied_commit(repository: Lab) -> None:
    """A commit beside the last applied one would undo it unseen: guard went_back blocks it.

    It does so too if the repository does not even have the last applied commit. A shallow clone
    cannot tell whether one commit contains another: the plan says that.
    """
    last = apply_commit(repository, SECOND)
    other = branch_off(repository)
    blocked = (
        f"{Guard.WENT_BACK}: commit {other[:7]} does not contain {last[:7]}, which was applied last"
    )

    plan, reconcile = repository.call("plan", "demo"), repository.call("reconcile", "demo")
    assert [(run.returncode, blocked in run.stdout) for run in (plan, reconcile)] == [(1, True)] * 2

    branch = git(repository.folder, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    git(repository.folder, "branch", "--quiet", "--delete", "--force", branch)
    forget_other_commits(repository)
    assert blocked in repository.call("plan", "demo").stdout
    assert repository.runs[-1].read(CHANGES).failure == (
        f"this repository lacks commit {last[:7]}: fetch it (git fetch; in a shallow clone, git "
        "fetch --unshallow)"
    )

    (repository.folder.parent / ".git" / "shallow").write_text(f"{other}\n")
    plan = repository.call("plan", "demo")
    assert (plan.returncode, Guard.WENT_BACK in plan.stdout) == (0, False)
    assert f"It is unknown whether {last[:7]}, which was applied last, is in" in plan.stdout


@pytest.mark.parametrize("given", [(), ("--commit", "v1.2")])
def test_a_branch_is_blocked_after_a_rollback_too(repository: Lab, given: tuple[str, ...]) -> None:
    """The last commit before a rollback counts, whatever commit is given for the checkout."""
    last = apply_commit(repository, SECOND)
    rollback = repository.call("rollback", "last", "--reason", "x", "--format", "json")
    run, digest = (json.loads(rollback.stdout)[name] for name in ("run", "plan"))
    approve = ("--approve", digest["digest"], "--reason", "x")
    assert repository.call("reconcile", "--run", run, *approve).returncode == 0
    other = branch_off(repository)

    plan = repository.call("plan", "demo", *given)

    lacks = f"commit {other[:7]} does not contain {last[:7]}, which was applied last"
    assert lacks in plan.stdout


def test_a_commit_that_is_applied_between_check_and_describe(repository: Lab) -> None:
    """A run in Airflow compares with the commit that was applied last when describe began."""
    run = repository.start()
    run_stages(run, ("check",))
    checked = head(repository.folder)
    last = apply_commit(repository, SECOND)

    run_stages(run, ("describe", "diff", "plan"))

    lacks = f"commit {checked[:7]} does not contain {last[:7]}, which was applied last"
    assert guards(run.folder)[Guard.WENT_BACK] == lacks


@pytest.mark.parametrize("declared", [FIRST, SECOND])
def test_a_commit_that_was_written_and_not_verified(repository: Lab, declared: State) -> None:
    """A commit counts for guard went_back once a run has written it, as by `apply`.

    A run that only repairs what another commit declares has not written its own.
    """
    apply_commit(repository)
    repository.put(THIRD)
    repository.desire(declared)
    (repository.folder / "README.md").write_text("more")
    last = commit_all(repository.folder.parent)
    allow = ("--allow", "conflict", "--reason", "a test")
    assert repository.call("apply", "demo", *allow).returncode == 0
    branch_off(repository)

    plan = repository.call("plan", "demo")

    told = f"does not contain {last[:7]}, which was applied last"
    assert (told in plan.stdout) == (declared == SECOND)


@pytest.mark.parametrize("adopted", [False, True], ids=["an older copy", "adopted after a loss"])
def test_a_stale_checkout_beside_an_older_ledger(repository: Lab, *, adopted: bool) -> None:
    """The claims of later runs have the last applied commit, which such a ledger does not know."""
    assert repository.call("reconcile", "demo").returncode == 0
    first, old = head(repository.folder), {*repository.records.ledger.list()}
    last = apply_commit(repository, SECOND)
    for name in {*repository.records.ledger.list()} - (set() if adopted else old):
        (repository.records.ledger / name).delete()
    if adopted:
        ended = repository.call("adopt", "demo", "--all", "--reason", "INC-31")
        assert ended.returncode == 0, ended.stderr
    git(repository.folder, "checkout", "--quiet", first)

    ended = repository.call("reconcile", "demo")

    assert ("This run read a new ledger, because the one before was" in ended.stdout) == adopted
    assert f"does not contain {last[:7]}, which was applied last" in ended.stdout
    assert repository.stored() == SECOND


def test_files_in_no_repository(repository: Lab) -> None:
    """A plan that Git cannot compare with the last applied commit reports that, and why."""
    last = apply_commit(repository)
    (repository.folder.parent / ".git").rename(repository.root / "elsewhere.git")
    repository.desire(SECOND)

    plan = repository.call("plan", "demo", "--commit", "v2")

    told = f"It is unknown whether {last[:7]}, which was applied last, is in the history of these"
    assert f"{told} files: the files of this run are in no Git repository." in plan.stdout


def test_a_commit_that_the_repository_has_lost_since_check(repository: Lab) -> None:
    """A worker whose clone lacks the commit that check read cannot compare, and reports that."""
    last = apply_commit(repository, SECOND)
    branch_off(repository)
    run = repository.start()
    run_stages(run, ("check",))
    git(repository.folder, "checkout", "--quiet", last)
    forget_other_commits(repository)

    run_stages(run, ("describe", "diff", "plan", "report"))

    text = (run.folder.place / TEXT).read().decode()
    assert f"It is unknown whether {last[:7]}, which was applied last, is in" in text
    assert Guard.WENT_BACK not in guards(run.folder)


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_a_branch_that_is_checked_into_an_earlier_run(
    repository: Lab, strict: tuple[str, ...]
) -> None:
    """A plan of a run is also blocked if its files are read again, one stage at a time."""
    last = apply_commit(repository, SECOND)
    repository.call("plan", "demo")
    run = f"demo/{repository.runs[-1].place.name}"
    branch_off(repository, {**THIRD, "user=any": {KEY: 11.0}})

    repository.call("check", "--run", run, *strict)
    *_, plan = (repository.call(stage, "--run", run) for stage in ("describe", "diff", "plan"))

    assert f"does not contain {last[:7]}, which was applied last" in plan.stdout, plan.stderr


def test_a_branch_is_not_checked_without_the_ledger(repository: Lab) -> None:
    """A check of a run that cannot read what was applied stops: its plan would compare nothing."""
    repository.call("plan", "demo")
    (repository.records.ledger / "00000009.parquet").create(b"PAR1")

    ended = repository.call("check", "--run", f"demo/{repository.runs[-1].place.name}")

    assert ended.returncode == 2
    assert ended.stderr.startswith("the ledger does not parse: ")


def test_a_given_commit_that_the_repository_does_not_have(repository: Lab) -> None:
    """The run that records it says so, and later ones are compared with the one applied before."""
    first = apply_commit(repository)
    repository.desire(SECOND)
    commit_all(repository.folder.parent)
    given = repository.call("reconcile", "demo", "--commit", "v1.2")
    repository.desire({**THIRD, "user=any": {KEY: 11.0}})
    commit_all(repository.folder.parent)
    later = repository.call("plan", "demo")
    git(repository.folder, "checkout", "--quiet", "--orphan", "other")
    other = commit_all(repository.folder.parent)
    beside = repository.call("plan", "demo")

    note = "This repository has no commit v1.2, so later runs are not compared with it"
    assert (given.returncode, note in given.stdout) == (0, True)
    assert (later.returncode, note in later.stdout, "unknown" in later.stdout) == (0, False, False)
    assert f"commit {other[:7]} does not contain {first[:7]}, which was applied" in beside.stdout


def test_a_policy_counts_where_commits_are_not_compared(repository: Lab) -> None:
    """What a run outside Git protects is protected, although a hold keeps it from writing a row."""
    assert repository.call("reconcile", "demo").returncode == 0
    hold_alice(repository)
    (repository.folder.parent / ".git").rename(repository.root / "git")
    repository.desire(THIRD, protect=[{"user": "bob"}])
    allow = ("--allow", "policy_changed", "--reason", "a test")
    assert repository.call("reconcile", "demo", "--commit", "abcdef1", *allow).returncode == 0
    repository.desire(THIRD)

    ended = repository.call("alter", "demo", "--names", "user=bob", "--add", f"{KEY}=30")

    assert ended.returncode == 1
    assert "the last applied cluster.yaml lists user=bob under protect" in ended.stderr


def test_what_holds_keep_a_branch_from_writing_is_blocked_later(repository: Lab) -> None:
    """A branch that lacks the last applied commit does not count as applied while it is held."""
    apply_commit(repository, SECOND)
    branch_off(repository)
    hold_alice(repository)
    apply_commit(repository)
    assert repository.call("release", "demo", *ALICE).returncode == 0

    ended = repository.call("reconcile", "demo")

    assert (ended.returncode, f"{Guard.WENT_BACK}: " in ended.stdout) == (1, True)


def test_a_held_branch_leaves_the_last_policy(repository: Lab) -> None:
    """A branch that lacks the last applied commit, and is held, does not end the pause of main."""
    apply_commit(repository, SECOND)
    second = repository.runs[-1].place.name
    apply_commit(repository, SECOND, paused="broker upgrade")
    hold_alice(repository)
    branch_off(repository)
    apply_commit(repository)
    assert repository.call("release", "demo", *ALICE).returncode == 0

    ended = repository.call("rollback", f"demo/{second}", "--reason", "INC-31")

    assert "paused: broker upgrade" in ended.stdout


def test_a_branch_that_lacks_what_a_value_returns_to_is_blocked(repository: Lab) -> None:
    """Two commits that declare the same values now differ if one of these ends otherwise."""
    commits = []
    for later in (5_000_000, 4_000_000):
        (repository.folder / "team.yaml").write_text(TEMPORARY.format(later))
        commits.append(commit_all(repository.folder.parent))
        assert repository.call("reconcile", "demo").returncode == 0
    git(repository.folder, "checkout", "--quiet", commits[0])
    repository.desire(THIRD)
    commit_all(repository.folder.parent)

    ended = repository.call("plan", "demo")

    told = f"does not contain {commits[1][:7]}, which was applied last"
    assert (ended.returncode, told in ended.stdout) == (1, True)


@pytest.mark.parametrize(
    ("declared", "policy", "blocked"),
    [(FIRST, {}, False), (SECOND, {}, True), (FIRST, {"paused": "broker upgrade"}, True)],
)
def test_a_commit_beside_one_that_declares_the_same(
    repository: Lab, declared: State, policy: dict[str, str], *, blocked: bool
) -> None:
    """A commit that contains neither the last one nor one that declares the same is blocked.

    Two commits declare the same as long as a value that differs has only been changed by hand,
    and the policy is the same: one that begins a pause declares something else.
    """
    apply_commit(repository)
    repository.put(declared)
    (repository.folder / "README.md").write_text("more")
    apply_commit(repository, declared, **policy)
    branch_off(repository)

    ended = repository.call("plan", "demo")

    assert (ended.returncode, f"{Guard.WENT_BACK}: " in ended.stdout) == (int(blocked), blocked)


def test_git_refuses(repository: Lab, refusing: dict[str, str]) -> None:
    """If Git refuses, a command that only reads gives the reason.

    A command that writes stops.
    """
    why = WHY.format(repository.folder.resolve())
    remedy = "git config --global --add safe.directory /srv; or pass the commit with --commit."
    plan = repository.cli("plan", "demo", environment=refusing)
    assert (plan.returncode, why in plan.stdout) == (0, True), plan.stdout + plan.stderr
    (run,) = repository.store.runs("demo")
    digest = RunFolder(run).read_json(PLAN)["digest"]

    for command in (
        ("reconcile", "demo"),
        ("reconcile", "--run", str(run), "--approve", digest),
        ("alter", "demo", "--names", "user=alice", "--add", f"{KEY}=1"),
        ("adopt", "demo", "--all", "--reason", "why"),
        ("release", "demo", "--from-ledger", "--all", "--reason", "why"),
    ):
        ended = repository.cli(*command, environment=refusing)
        assert (ended.returncode, why in ended.stderr) == (2, True), (command, ended.stderr)
        assert ("--run" in command) or (remedy in ended.stderr)
    assert repository.stored() == {}

    given = ("reconcile", "demo", "--commit", "c0ffee1")
    ended = repository.cli(*given, environment=refusing)
    assert ended.returncode == 0, ended.stderr
    assert ") at c0ffee1 (as given, not compared)  " in ended.stdout
    assert repository.stored() == FIRST
