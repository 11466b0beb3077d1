"""The review of a branch, on a real broker: what the branch changes decides alone."""

import json
import re
from pathlib import Path

import pytest

from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from tests.broker.rights import properties_of, rights
from tests.lab import Lab, open_lab
from tests.places import delete_all
from tests.repositories import commit_all, git, head

MIB = 2.0**20
RATE = "producer_byte_rate"


def limits(**users: float) -> dict[str, dict[str, float]]:
    """Return a rate in MiB for each user."""
    return {f"user={name}": {RATE: value * MIB} for name, value in users.items()}


def begin(lab: Lab, **users: float) -> None:
    """Commit quotas on main, check out a branch, and let the run store have a run."""
    lab.start()
    lab.desire(limits(**users), guards={"cut_share": 50, "raise_factor": 10})
    git(lab.folder.parent, "init", "--quiet", "--initial-branch", "main")
    commit_all(lab.folder.parent)
    git(lab.folder.parent, "checkout", "--quiet", "-b", "branch")


def change(lab: Lab, **users: float) -> None:
    """Commit other quotas on the branch."""
    lab.desire(limits(**users), guards={"cut_share": 50, "raise_factor": 10})
    commit_all(lab.folder.parent)


def review(lab: Lab, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the comment of a review, without what differs in each run."""
    ended = lab.call("review", *arguments)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


def heading(lab: Lab, verdict: str) -> str:
    """Return the first line of the comment."""
    root = lab.folder.parent
    base = git(root, "rev-parse", "main")[:7]
    return (
        f"**quota-ops · {verdict}** · commit `{head(root)[:7]}` · compared with `{base}`\n\n"
        "| | who | quota | current → desired | owner, source, reason |\n|-|-|-|-|-|\n"
    )


def table_row(who: str, values: str, source: str, sign: str = "↑") -> str:
    """Return a row of the comment about a producer rate of the team."""
    return f"| {sign} | {who} | `{RATE}` | {values} | `team` {source} |\n"


def test_without_a_ledger_what_main_declares_is_managed(lab: Lab) -> None:
    """A raise is no takeover, and a removal is shown; a new quota over a stored value is one."""
    lab.put(limits(alice=10, bob=7, carol=5, dave=3))
    begin(lab, alice=10, bob=20, carol=5)
    change(lab, alice=20, bob=20, dave=6)

    code, comment = review(lab)

    assert code == 1
    assert comment.startswith(
        heading(lab, "⚠️ 3 changes on `demo`; 2 guards need approval")
        + table_row(
            "user `carol`",
            "5 MiB/s → **none**<br>`no longer limited: user carol`",
            "was `team.yaml:10`",
            "⚠",
        )
        + table_row(
            "user `dave`",
            "3 MiB/s → **6 MiB/s** (+100 %)<br>"
            "`takeover: the cluster has another, unmanaged value`",
            "`team.yaml:10`",
            "⚠",
        )
        + table_row("user `alice`", "10 MiB/s → **20 MiB/s** (+100 %)", "`team.yaml:4`")
    )
    assert "\nThe broker accepts all 3 changes (validate-only, 1 request, " in comment
    assert comment.endswith(
        "\nThe run store has no ledger of this cluster, so whatever the merge base declares counts "
        "as managed.\n\n"
        "<details><summary>1 other difference on <code>demo</code> is not from this branch"
        "</summary>\n\n| who | quota | current → Git | kind |\n|-|-|-|-|\n"
        f"| user `bob` | `{RATE}` | 7 MiB/s → 20 MiB/s | `pending` |\n\n</details>\n"
    )
    assert lab.stored() == limits(alice=10, bob=7, carol=5, dave=3)


def test_drift_is_folded_and_never_red(lab: Lab) -> None:
    """What others changed is not in the verdict, and what is on the cluster already is named.

    A review changes neither the cluster nor the run store.
    """
    begin(lab, alice=10, bob=20, carol=5)
    lab.run("reconcile")
    lab.put(limits(bob=7, carol=8))
    change(lab, alice=20, bob=20, carol=8)
    before = lab.store.root.walk(), lab.stored()

    code, comment = review(lab, "--out", str(lab.root / "out"))

    assert code == 0
    assert comment.startswith(
        heading(lab, "✅ 1 change on `demo`")
        + table_row("user `alice`", "10 MiB/s → **20 MiB/s** (+100 %)", "`team.yaml:4`")
        + f"\nAlready on the cluster: `user=carol {RATE}`.\n\nThe broker accepts the change "
    )
    assert f"| user `bob` | `{RATE}` | 7 MiB/s → 20 MiB/s | `drifted` |" in comment
    assert (lab.root / "out" / "clusters" / "demo" / "report.html").is_file()
    assert (lab.store.root.walk(), lab.stored()) == before
    found = json.loads((lab.root / "out" / "review.json").read_text())
    (cluster,) = found["clusters"]
    assert (found["verdict"], found["exit_code"]) == ("✅ 1 change on demo", 0)
    assert [(row["entity"], row["before"], row["after"]) for row in cluster["written"]] == [
        ("user=alice", 10 * MIB, 20 * MIB)
    ]
    assert [(row["entity"], row["kind"]) for row in cluster["others"]] == [("user=bob", "drifted")]
    assert (cluster["stored"], cluster["unwritten"]) == ([["user=carol", RATE]], [])


def test_what_is_removed_and_not_there_is_called_absent(lab: Lab) -> None:
    """A removed quota that somebody has deleted is not said to be on the cluster.

    If an unmanaged one keeps clients from what the branch declares, the verdict says so.
    """
    lab.put(
        limits(alice=10)
        | {f"client-id=<default>,user={user}": {RATE: 1000.0} for user in ("alice", "carol")}
    )
    begin(lab, alice=10, bob=20)
    change(lab, alice=10, carol=5)

    code, comment = review(lab)

    assert code == 0
    verdict = "⚠️ 1 change on `demo`; 1 unmanaged quota on the cluster comes first"
    assert comment.startswith(heading(lab, verdict))
    assert (
        "\n- `user carol, every client id without a limit of its own: 1 kB/s in force, lower than "
        "5 MiB/s declared by "
        "user=carol (team.yaml:7)`\n"
    ) in comment
    assert f"\nAlready absent from the cluster: `user=bob {RATE}`.\n" in comment
    others = comment.partition("not from this branch")[2]
    assert f"| `{RATE}` | 1 kB/s → none | `overriding` |" in others
    assert "carol" not in others


def test_a_wider_protect_names_the_quotas_that_it_accepts(lab: Lab) -> None:
    """They are changes of the branch, with the clients that stay at the lower limit."""
    begin(lab, alice=10)
    lab.run("reconcile")
    lab.put({"client-id=<default>,user=alice": {RATE: 1000.0}})
    guards = {"cut_share": 50, "raise_factor": 10}
    protect = [{"user": "alice", "client-id": "any"}]
    lab.desire(limits(alice=10), guards=guards, protect=protect)
    commit_all(lab.folder.parent)

    comment = review(lab)[1]

    assert (
        "\n⚠️ This branch protects quotas that come before quotas of Git: once it is applied, they "
        "are accepted, and no longer called overriding.\n\n- `user alice, every client id "
        "without a limit of its own: 1 kB/s in force, lower than "
        "10 MiB/s declared by user=alice (team.yaml:4)`\n"
    ) in comment
    assert "not of this branch" not in comment


def test_another_owner_is_a_change(lab: Lab) -> None:
    """A review and a plan show it until a run has recorded it; another mapping needs approval."""
    begin(lab, alice=10, bob=20)
    lab.run("reconcile")
    team = lab.folder / "team.yaml"
    team.write_text(team.read_text("utf-8").replace("team", "search"), "utf-8")
    commit_all(lab.folder.parent)
    words = "user=alice (team.yaml:4), user=bob get another owner: team -> search."

    code, comment = review(lab, "--out", str(lab.root / "out"))
    found = json.loads((lab.root / "out" / "review.json").read_text())["clusters"][0]
    plan = lab.call("plan", "demo")
    root = lab.folder.parent
    git(root, "branch", "--quiet", "--force", "main")
    team.write_text(team.read_text("utf-8").replace("10485760", "11485760"), "utf-8")
    commit_all(root)
    unapplied, later_comment = review(lab)
    assert unapplied == 1
    assert later_comment.startswith("**quota-ops · ⚠️ 1 change on `demo`; 1 guard needs approval**")
    assert (
        "\nThe target branch, not this change, has given quotas to another owner, and no run has "
        f"applied that: {words} A guard judges that too (foreign_owner).\n"
    ) in later_comment
    git(root, "reset", "--quiet", "--hard", "main")
    applied = lab.call("reconcile", "demo", "--allow", "foreign_owner", "--reason", "agreed")
    later = lab.call("plan", "demo")

    assert (code, plan.returncode, applied.returncode) == (1, 1, 0), plan.stdout
    verdict = "⚠️ 2 changed owners on `demo`; 1 guard needs approval"
    assert comment.startswith(f"**quota-ops · {verdict}**")
    assert f"\nforeign_owner: {words[:-1]}\n" in plan.stdout
    assert comment.count(words[:-1]) == 1, "the guard lists it"
    assert found["owner_changes"] == [
        {
            "before": "team",
            "after": "search",
            "entities": ["user=alice", "user=bob"],
            "source": "team.yaml:4",
        }
    ]
    shown = [ended.stdout.count(words[:-1]) for ended in (plan, applied, later)]
    assert shown == [1, 1, 0], "the guard lists it, until a run has recorded it"
    cluster = lab.folder / "cluster.yaml"
    mapping = "owners: {search: {users: [alice], files: [team.yaml]}}\n"
    cluster.write_text(f"{cluster.read_text('utf-8')}{mapping}", "utf-8")
    commit_all(lab.folder.parent)
    moved = lab.call("plan", "demo")
    changed = (
        "policy_changed: cluster.yaml changed since it was applied: owners\n"
        "  owners: none -> search\n  owners.search.files: none -> team.yaml\n"
        "  owners.search.users: none -> alice\n"
    )
    assert (moved.returncode, changed in moved.stdout) == (1, True), moved.stdout
    assert re.search(
        r"\nnext: quota-ops reconcile --run \S+ --approve \w{64} --reason TEXT$",
        moved.stdout.rstrip(),
    )


def test_what_the_cluster_has_already_is_no_change(lab: Lab) -> None:
    """A removed quota that somebody deleted is absent, and what the branch applied is stored."""
    begin(lab, alice=10, bob=20)
    lab.run("reconcile")
    lab.put({"user=bob": {RATE: None}})
    change(lab, alice=12, carol=9)

    _, before = review(lab)
    lab.run("reconcile")
    _, after = review(lab)

    absent = f"\nAlready absent from the cluster: `user=bob {RATE}`.\n"
    assert before.startswith("**quota-ops · ✅ 2 changes on `demo`**")
    assert absent in before
    assert "⚠" not in before
    assert after.partition("\n")[2].startswith(
        f"\nAlready on the cluster: `user=alice {RATE}`, `user=carol {RATE}`.\n{absent}"
    )
    assert after.startswith("**quota-ops · ✅ no change on `demo`**")


def test_a_digest_is_promised_only_if_nothing_else_is_merged(lab: Lab) -> None:
    """What main has merged and no run has applied is in the plan after the merge as well."""
    begin(lab, alice=10, bob=20)
    lab.run("reconcile")
    change(lab, alice=20, bob=20)
    root = lab.folder.parent
    git(root, "checkout", "--quiet", "main")
    (root / "README.md").write_text("quotas")
    commit_all(root)
    git(root, "checkout", "--quiet", "branch")

    _, alone = review(lab)
    git(root, "checkout", "--quiet", "main")
    change(lab, alice=10, bob=30)
    git(root, "checkout", "--quiet", "branch")
    _, behind = review(lab)

    assert ["The plan after the merge has" in one for one in (alone, behind)] == [True, False]


def test_what_is_merged_and_not_applied_is_judged_too(lab: Lab) -> None:
    """Rows, guards, clients and totals of owners agree on what main has merged and no run wrote."""
    policy = {
        "guards": {"cut_share": 50, "blast_radius": 1},
        "inventory": "clients.csv",
        "ceilings": {"team": {"total": {RATE: int(110 * MIB)}}},
    }
    user, client, read = "user=<default>", "client-id=<default>", "consumer_byte_rate"
    state = {user: {RATE: 10 * MIB}, **limits(zed=3, xia=5, bob=90), client: {read: 20 * MIB}}
    begin(lab)
    (lab.folder / "clients.csv").write_text("user,client-id\nxia,app\nyan,app\nzoe,app\nbob,\n")
    lab.desire(state, **policy)
    root = lab.folder.parent
    commit_all(root)
    git(root, "branch", "--force", "main")
    lab.run("reconcile")
    change = {**state, **limits(bob=91), client: {read: 14 * MIB}}
    lab.desire({entity: change[entity] for entity in change if entity != "user=xia"}, **policy)
    commit_all(root)
    alone = review(lab)
    git(root, "checkout", "--quiet", "main")
    new = {"user=yan": {read: 9 * MIB}, **limits(erin=20)}
    lab.desire({**new, **state, user: {RATE: 2 * MIB}}, **policy)
    commit_all(root)
    git(root, "checkout", "--quiet", "branch")

    code, comment = review(lab)

    xia = "`{}: user xia, from 5 MiB/s to {} MiB/s (user=<default>)`"
    clients, guard = "\n⚠ Of 4 clients in the inventory: {}.\n", "`{} clients would or may get less"
    total = "`team would have 116 MiB/s of producer_byte_rate together, above its 110 MiB/s`"
    note = f"no run has applied that: `{user} {RATE}`, `user=erin {RATE}`, `user=yan {read}`."
    expected = [
        (xia.format("raised", 10), clients.format("3 cut, 2 raised"), guard.format(3)),
        (xia.format("cut", 2), clients.format("2 cut, 1 raised"), guard.format(2), total, note),
    ]
    shown = (alone[1], comment)
    assert (alone[0], code) == (1, 1)
    for number, texts in enumerate(expected):
        assert [[text in one for one in shown] for text in texts] == [
            [number == 0, number == 1] for _ in texts
        ]


def test_what_was_merged_since_is_not_reverted(lab: Lab) -> None:
    """A branch that is behind main shows neither main's new quotas as removed nor its raises."""
    begin(lab, alice=10, bob=20)
    git(lab.folder.parent, "checkout", "--quiet", "main")
    change(lab, alice=10, bob=30, carol=5)
    lab.run("reconcile")
    git(lab.folder.parent, "checkout", "--quiet", "branch")
    change(lab, alice=20, bob=20)

    code, comment = review(lab)

    assert (code, comment.count("\n| ")) == (0, 2)  # the heading and alice
    assert (
        f"\nMerged since this branch began, and on the cluster already: `user=bob {RATE}`, "
        f"`user=carol {RATE}`. This branch does not revert that.\n"
    ) in comment
    assert "<details>" not in comment


def test_a_job_that_may_only_describe_is_green(
    secured_broker: RunningBroker, tmp_path: Path
) -> None:
    """Validation is skipped and reported, and the exit code is 0."""
    with rights(secured_broker), open_lab(secured_broker, tmp_path) as lab:
        begin(lab, alice=10)
        change(lab, alice=20, bob=20)
        lab.connection_file.write_text(properties_of(secured_broker, "reader"))

        code, comment = review(lab)

        assert (code, comment.partition("\n")[0]) == (
            0,
            heading(lab, "✅ 2 changes on `demo`").partition("\n")[0],
        )
        assert "\nNot validated by the broker: the Kafka user of this job is not " in comment
        assert "**1 new finding**" in comment
        assert "\n- QO204 `the cluster`: `Whether the cluster knows the users " in comment


def test_a_cluster_that_cannot_be_queried_is_red(lab: Lab) -> None:
    """The comment shows the changes in the files and why the cluster was not queried."""
    begin(lab, alice=10)
    change(lab, alice=20)
    lab.connection_file.unlink()

    code, comment = review(lab)

    assert (code, comment.partition("** ·")[0]) == (
        6,
        "**quota-ops · ❔ 1 change on `demo`; cannot judge: the cluster was not queried",
    )
    assert "| merge base → desired |" in comment
    assert "10 MiB/s → **20 MiB/s** (+100 %)" in comment
    why = f"{lab.connection_file}, named by $QUOTA_OPS_CONNECTION_DEMO: No such file or directory."
    assert "\n❔ Cannot judge, because the cluster was not queried: `" in comment
    assert f"{why}`\n" in comment


def test_a_branch_is_judged_by_the_strictest_policy_that_was_applied_or_merged(lab: Lab) -> None:
    """What the review blocks, the plan blocks, even if main has loosened the guard meanwhile."""
    begin(lab, alice=10, bob=20)
    lab.run("reconcile")
    root = lab.folder.parent
    git(root, "checkout", "--quiet", "main")
    lab.desire(limits(alice=10, bob=20), guards={"cut_share": 90, "raise_factor": 10})
    commit_all(root)
    git(root, "checkout", "--quiet", "-B", "branch")
    lab.desire(limits(alice=4, bob=20), guards={"cut_share": 90, "raise_factor": 10})
    commit_all(root)

    code, comment = review(lab)
    plan = lab.call("plan", "demo")

    cut = f"user=alice {RATE} would fall by more than 50 % (as last applied"
    assert (code, f"`cut`: `{cut} or merged; now it is 90)`" in comment) == (1, True), comment
    assert (
        "\nThe target branch has changed cluster.yaml since it was last applied (guards): the plan "
        "after the merge needs approval for that too (policy_changed).\n"
    ) in comment
    assert (plan.returncode, f"{cut}; now it is 90)" in plan.stdout) == (1, True), plan.stdout
    assert "policy_changed" in plan.stdout


def test_a_lost_ledger_or_a_wrong_run_store_is_no_agreement(lab: Lab) -> None:
    """Without the last applied policy and values, nothing is green: no guard could judge by them.

    The store knows that it had a ledger, and one that is empty may be a typing error.
    """
    begin(lab, alice=10)
    lab.run("reconcile")
    change(lab, alice=9)
    assert review(lab)[0] == 0
    delete_all(lab.records.ledger)

    for where, detail in (
        ((), "the run store has no ledger: its newest file, 0"),
        (("--run-store", str(lab.root / "typo")), f"the run store {lab.root / 'typo'} is empty or"),
    ):
        code, comment = review(lab, *where)
        assert code == 6
        assert "cannot judge: the ledger was not read" in comment.splitlines()[0]
        assert detail in comment

    lab.records.ledger_end.delete()
    lost = "no ledger, although runs have begun to apply: it is lost, or none of them has written"
    code, comment = review(lab)
    plan = lab.call("plan", "demo").stdout
    assert (code, f"the run store has {lost}" in comment) == (6, True), comment
    assert f"\nThis run read {lost}" in plan, plan
    assert "or take over what Git declares: quota-ops adopt demo --all --reason TEXT\n" in plan
    assert "No ledger of this cluster yet" not in plan


def test_a_repair_of_main_is_not_judged(lab: Lab) -> None:
    """Nothing is green about a branch whose merge base does not parse, and the guards still look.

    The guards are those of the last applied policy, and the loosened ones are listed.
    """
    begin(lab, alice=10, bob=20)
    lab.run("reconcile")
    root = lab.folder.parent
    git(root, "checkout", "--quiet", "main")
    (lab.folder / "team.yaml").write_text("owner: team\nquotas: 3\n", "utf-8")
    commit_all(root)
    git(root, "checkout", "--quiet", "-B", "branch")
    lab.desire(limits(alice=1, bob=20), guards={"cut_share": 100, "raise_factor": 10})
    commit_all(root)

    code, comment = review(lab)

    verdict = (
        "❔ 1 change and changed settings on `demo`; cannot judge: the files of the merge base"
    )
    assert (code, comment.partition("** ·")[0]) == (6, f"**quota-ops · {verdict} are invalid")
    cut = (
        f"user=alice {RATE} would fall by more than 50 % (as last applied or merged; now it is 100)"
    )
    assert f"\n- ⚠️ `cut`: `{cut}` (`demo/team.yaml:4`)\n" in comment
    assert "\n- `guards.cut_share`: `50.0` -> `100.0`\n" in comment, comment
    assert ("✅" in comment, "same digest" in comment) == (False, False)


def test_settings_that_come_too_late_are_no_agreement(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan and a review show which findings were not checked, and the review has no verdict."""
    begin(lab, alice=10)
    lab.run("reconcile")
    change(lab, alice=20)

    def fail(_cluster: Cluster, _timeout: float) -> ClusterFacts:
        raise OSError

    monkeypatch.setattr(Cluster, "read_facts", fail)

    code, comment = review(lab)
    plan = lab.call("plan", "demo")

    missed = (
        "The settings of no broker arrived in time, so QO201 and client.quota.callback.class were "
        "not checked. The users and ACLs of the cluster did not arrive in time, so QO202 was not "
        "checked."
    )
    assert (code, comment.partition("** ·")[0]) == (
        6,
        "**quota-ops · ❔ 1 change on `demo`; cannot judge: brokers sent their settings too late",
    )
    assert f"because brokers sent their settings too late: `{missed}`" in comment
    assert "same digest" not in comment
    assert (plan.returncode, missed in plan.stdout) == (0, True), plan.stdout


def test_a_branch_does_not_choose_the_connection(lab: Lab) -> None:
    """Another connection than the merge base names is not opened, unless the job allows it."""
    begin(lab, alice=10)
    file = lab.folder / "cluster.yaml"
    file.write_text(re.sub("connection: .*", "connection: admin", file.read_text("utf-8")), "utf-8")
    commit_all(lab.folder.parent)
    admin = {"QUOTA_OPS_CONNECTION_ADMIN": str(lab.connection_file)}

    refused = lab.call("review", environment=admin)
    allowed = lab.call("review", environment={**admin, "QUOTA_OPS_REVIEW_CONNECTIONS": "x admin"})

    assert refused.returncode == 6
    assert "the cluster was not queried" in refused.stdout.splitlines()[0]
    assert (
        "demo was not queried: this branch names the connection admin, and the merge base demo"
    ) in refused.stdout
    assert "1 guard needs approval" in allowed.stdout  # a changed setting
    assert "not queried" not in allowed.stdout


def test_limits_of_the_whole_cluster(lab: Lab) -> None:
    """Both sides are divided by the brokers of the cluster, or else by those of the last run.

    Without either, the verdict does not judge them; a topic that does not exist is a problem of
    its line.
    """

    def declare(text: str) -> None:
        quota = f"  - {{user: etl, {text}}}\n"
        (lab.folder / "team.yaml").write_text(f"owner: team\nquotas:\n{quota}", "utf-8")
        commit_all(lab.folder.parent)

    begin(lab)
    git(lab.folder.parent, "checkout", "--quiet", "main")
    declare(f"cluster_limits: {{{RATE}: 10 MiB}}")
    git(lab.folder.parent, "checkout", "--quiet", "-B", "branch")
    declare(f"cluster_limits: {{{RATE}: 20 MiB}}")
    unknown = review(lab, "--files-only")
    assert "by how many brokers is unknown: user=etl producer_byte_rate" in unknown[1]
    assert "20 MiB/s**" not in unknown[1]

    lab.run("reconcile")
    for more in ((), ("--files-only",)):
        declare(f"cluster_limits: {{{RATE}: {30 + len(more)} MiB}}")
        code, comment = review(lab, *more)
        before = "10" if more else "20"
        assert f"{before} MiB/s → **{30 + len(more)} MiB/s**" in comment, comment
        assert "per cluster, over 1 broker" in comment
        assert code == 0
    declare(f"topics: [none], cluster_limits: {{{RATE}: 20 MiB}}")
    code, comment = review(lab)
    assert (code, "No topic is none." in comment) == (2, True)
    assert "`demo/team.yaml:3:1`" in comment
