"""Guards compare the limits of clients, whichever row changes, and what a blocked plan writes."""

import getpass
import json
from html import unescape

import yaml

from quota_ops.model.plans.guard import OF_ALTER
from quota_ops.store.run.files import APPLIED, PLAN, REPORT
from tests.lab import Lab
from tests.quotas_yaml import quota_entry, to_yaml
from tests.writing import State

P = "producer_byte_rate"
MIB = 2**20
UNLIMITED = 2.0**63
EVERYONE, NEW, GATEWAY = "user=<default>", "user=newjob", "user=payments-gw"
REPORTING = "client-id=reporting,user=payments-gw"
BEFORE: State = {EVERYONE: {P: 10 * MIB}, GATEWAY: {P: 5 * MIB}, "user=tiny": {P: MIB / 2}}


def declare(lab: Lab, owner: str, state: State) -> None:
    """Write the quotas file of an owner."""
    quotas = [quota_entry(entity, limits) for entity, limits in state.items()]
    (lab.folder / f"{owner}.yaml").write_text(to_yaml({"owner": owner, "quotas": quotas}))


def reconcile_first(lab: Lab, state: State = BEFORE) -> None:
    """Apply what Git declares at first, with the default thresholds of the guards."""
    lab.folder.mkdir(parents=True, exist_ok=True)
    policy = {"cluster_id": lab.cluster.cluster_id, "connection": "demo"}
    (lab.folder / "cluster.yaml").write_text(yaml.safe_dump(policy))
    declare(lab, "payments", state)
    done = lab.call("reconcile", "demo", "--allow", "default_touched", "--reason", "first")
    assert done.returncode == 0, done.stdout


def plan(lab: Lab) -> tuple[int, dict[str, str]]:
    """Return the exit code of a plan, and the message of each guard that blocks it."""
    done = lab.call("plan", "demo", "--format", "json")
    guards = json.loads(done.stdout)["plan"]["guards"]
    return done.returncode, {guard["guard"]: guard["message"] for guard in guards}


def test_a_row_that_raises_clients_needs_approval(lab: Lab) -> None:
    """A new or removed row, and an alter, are judged by the limits of clients, as a change is."""
    reconcile_first(lab)
    lifts = f"{NEW} {P} would lift the limit of clients"
    rise = "would raise the limit of some clients to more than 10 times"
    rises = f"{NEW} {P} {rise}"
    foreign = f"{REPORTING} {P} of search would change limits that payments set for its clients"
    assert plan(lab) == (0, {})
    declare(lab, "search", {NEW: {P: UNLIMITED}})
    assert plan(lab) == (1, {"unlimited": lifts})
    declare(lab, "search", {NEW: {P: 5000.0 * 2**30}})
    assert plan(lab) == (1, {"raise": rises})
    declare(lab, "search", {REPORTING: {P: UNLIMITED}})
    lifted = lifts.replace(NEW, REPORTING)
    assert plan(lab) == (1, {"unlimited": lifted, "foreign_owner": foreign})
    declare(lab, "search", {REPORTING: {P: 100 * 1024}})
    falls = f"{REPORTING} {P} would fall by more than 50 %"
    assert plan(lab) == (1, {"cut": falls, "foreign_owner": foreign})
    screen = lab.call("plan", "demo").stdout
    assert f"\nforeign_owner: {foreign}\n" in screen
    assert next(line for line in screen.splitlines() if REPORTING in line).startswith("!  pending")
    (lab.folder / "search.yaml").unlink()
    pairs: State = {f"client-id=app-{name},user=payments-gw": {P: 9.0 * MIB} for name in range(30)}
    declare(lab, "payments", {**BEFORE, **pairs})
    together = "client-id=app-0,user=payments-gw producer_byte_rate and 29 more"
    assert plan(lab) == (1, {"raise": f"{together} {rise}"})

    declare(lab, "payments", {name: BEFORE[name] for name in (EVERYONE, GATEWAY)})
    removed = {"raise": f"user=tiny {P} {rise}"}
    assert plan(lab) == (1, removed)
    declare(lab, "payments", BEFORE)

    flags = ("alter", "demo", "--names", "user=newjob", "--reason", "why")
    for value, message in (("unlimited", f"unlimited: {lifts}"), ("5000 GiB", f"raise: {rises}")):
        done = lab.call(*flags, "--add", f"{P}={value}")
        assert (done.returncode, message in done.stdout) == (1, True), done.stdout
    tiny = ("alter", "demo", "--names", "user=tiny", "--reason", "why")
    deleted = lab.call(*tiny, "--delete", P)
    assert (deleted.returncode, f"raise: user=tiny {P} {rise}" in deleted.stdout) == (1, True)
    assert lab.stored() == BEFORE

    lowered = ("alter", "demo", "--add", f"{P}=2 MiB", "--reason", "why")
    touched = f"default_touched: {EVERYONE} {P} would change; a default applies to many clients"
    for names, blocking in (
        (("--names", "user=payments-gw"), (f"cut: {GATEWAY} {P} would fall by more than 50 %",)),
        (("--names", "user=payments-gw,client-id=app"), ()),
        (("--defaults", "user"), (f"cut: {EVERYONE} {P} would fall by more than 50 %", touched)),
    ):
        done = lab.call(*lowered, *names, "--validate-only")
        guards = [line for line in done.stdout.splitlines() if line.split(":")[0] in OF_ALTER]
        assert (done.returncode, guards) == (int(bool(blocking)), [*blocking])
    allowed = lab.call(*lowered, "--names", "user=payments-gw", "--allow", "cut")
    assert (allowed.returncode, "(overridden: why)" in allowed.stdout) == (0, True)
    assert lab.call("alter", "demo", "--undo", "last", "--reason", "over").returncode == 0
    assert lab.stored() == BEFORE


def test_repairs_of_a_blocked_plan_are_written(lab: Lab) -> None:
    """Values that were last verified are restored at night; what a guard blocks waits, together."""
    reconcile_first(lab)
    damage: State = {EVERYONE: {P: 1000.0}, GATEWAY: {P: None}, "user=tiny": {P: MIB / 2}}
    lab.put(damage)
    repaired = lab.call("reconcile", "demo")
    assert (repaired.returncode, lab.stored()) == (0, BEFORE), repaired.stdout

    lab.put({GATEWAY: {P: 500.0}})
    pair: State = {"client-id=app,user=payments-gw": {P: 4.0 * MIB}}
    declare(lab, "payments", {**BEFORE, **pair})
    assert plan(lab) == (0, {}), "the pair leaves 5 MiB/s, to which its user is restored"
    declare(lab, "payments", BEFORE)

    lab.put(damage)
    declare(lab, "search", {NEW: {P: UNLIMITED}, "user=calm": {P: 9.0 * MIB}})
    blocked = lab.call("reconcile", "demo")
    words = (
        "1 guard blocks this plan. This run restored 2 quotas to the last verified "
        f"values: {EVERYONE} {P}, {GATEWAY} {P}. 2 other changes wait: user=calm {P}, {NEW} {P}. "
        "Override it with --allow unlimited"
    )
    assert blocked.returncode == 1
    assert words in blocked.stdout
    assert "applied: 2 waiting, 2 accepted\n" in blocked.stdout
    assert "broker 1 agrees" in blocked.stdout
    assert lab.stored() == BEFORE
    run = lab.runs[-1]
    assert {outcome.entity: outcome.status for outcome in run.outcomes(APPLIED)} == {
        EVERYONE: "accepted",
        GATEWAY: "accepted",
        NEW: "waiting",
        "user=calm": "waiting",
    }
    assert lab.known() == BEFORE
    found = run.read_json(REPORT)["plan"]
    assert [[row["entity"] for row in found[name]] for name in ("repairs", "waiting")] == [
        [EVERYONE, GATEWAY],
        ["user=calm", NEW],
    ]
    page = (run.place / "report.html").read().decode()
    assert words.partition(" Override")[0].partition(". ")[2] in unescape(page)
    shown = lab.call("show", "last").stdout
    assert shown.startswith("2 changes to make on demo; 1 guard blocks the plan; ")
    assert "2 changes made by this run" in shown.partition("\n")[0]

    digest = run.read_json(PLAN)["digest"]
    approve = ("reconcile", "--run", str(run.place), "--approve", digest, "--reason", "agreed")
    approved = lab.call(*approve)
    assert approved.returncode == 0, approved.stdout + approved.stderr
    assert "applied 2 keys on 2 entities in " in approved.stdout
    assert "; written earlier: 2 keys on 2 entities; " in approved.stdout
    after: State = {**BEFORE, NEW: {P: UNLIMITED}, "user=calm": {P: 9.0 * MIB}}
    assert lab.stored() == after
    assert lab.known() == after
    late = lab.call(*approve[:-1], "late", "--by", "carl")
    assert "applied: 4 accepted earlier\n" in late.stdout
    assert (
        f"written earlier: 4 keys on 4 entities ({getpass.getuser()} approved plan" in late.stdout
    )
    told = json.loads(lab.call("history", "demo", "--changes", "--format", "json").stdout)
    changes = [
        (change["entity"], change["reason"], change["approver"])
        for change in told["changes"]
        if change["run"] == run.place.name
    ]
    assert sorted(changes) == [  # both ends of the run can have the same second
        (EVERYONE, None, None),
        ("user=calm", "agreed", getpass.getuser()),
        (NEW, "agreed", getpass.getuser()),
        (GATEWAY, None, None),
    ]


def test_an_alter_that_restores_what_was_verified_is_no_raise(lab: Lab) -> None:
    """After a deep cut by hand, the value that was last verified can be set again at once."""
    reconcile_first(lab)
    lab.put({GATEWAY: {P: 1000.0}})
    back = ("alter", "demo", "--names", "user=payments-gw", "--add", f"{P}=5 MiB")
    assert lab.call(*back, "--reason", "why").returncode == 0
    lab.put({GATEWAY: {P: 1000.0}})
    more = ("alter", "demo", "--names", "user=payments-gw", "--add", f"{P}=6 MiB")
    assert lab.call(*more, "--reason", "why").returncode == 1
