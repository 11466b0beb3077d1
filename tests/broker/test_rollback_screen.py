"""What an operator reads at night: the planned rollback, and the command that writes it."""

import re

from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import reconcile
from tests.lab import Lab

KEY = "producer_byte_rate"
WHY = ("--reason", "INC-31", "--by", "anna")
HOLD = "quota-ops hold demo --names user=a --until 12h --reason TEXT"
AHEAD = (
    "To keep it, change these quotas in Git too, in a new commit (the run was of commit c2). Until "
    "then a run at a commit that was applied before is blocked by guard went_back; one at a new "
    "commit sets it again."
)


def test_an_operator_at_night(lab: Lab) -> None:
    """The command shows the plan, what stays and why, what Git does next, and the next command."""
    first = {"client-id=app,user=a": {KEY: 9.0}}
    reconcile(lab, first | {"user=a": {KEY: 1000.0}, "user=b": {KEY: 1.0}}, "c1")
    run = reconcile(lab, first | {"user=a": {KEY: 1500.0}, "user=b": {KEY: 2.0}}, "c2")
    lab.put({"user=b": {KEY: 3.0}})

    ended = lab.call("rollback", "demo/last", "--allow", "removals", *WHY)

    idle = "--allow removals: that guard did not block anything, so no override is recorded\n"
    assert (ended.returncode, ended.stderr) == (0, idle)
    name = run.place.name
    shown = ended.stdout.split("\n\n", 1)[1]
    assert re.sub(r"\d+ ms|\d\.\d s\b", "TIME", shown).splitlines()[:-2] == [
        "  kind     entity  key                 current   desired  change   source",
        f"  pending  user=a  {KEY}  1.5 kB/s  1 kB/s   -33.3 %  rollback of {name}",
        "     cut: user a; not affected by this row (own limits): client id app",
        "",
        "The broker accepts the change (validate-only, 1 request, TIME).",
        "",
        f"anna rolls back 1 of 2 changes of run {name}, 1 left unchanged: INC-31.",
        "entity  key                 before  set by the run  now    left unchanged because",
        f"user=b  {KEY}  1 B/s   2 B/s           3 B/s  changed outside Git since",
        AHEAD,
        f"To let runs repair drift of all others, hold it, once it is written: {HOLD}",
        "",
    ]
    place, last = ended.stdout.splitlines()[-2:]
    back = RunFolder(open_place(place.removeprefix("run: ")))
    digest = back.read_json(PLAN)["digest"]
    assert last == f"next: quota-ops reconcile --run {back.place} --approve {digest}"
    answer = lab.call("show", "last").stdout.partition("\n")[0]
    assert answer == "1 change to make on demo; 1 change left unchanged."
    done = lab.call(*last.split()[2:])
    assert (done.returncode, done.stderr) == (0, "")
    assert lab.stored() == first | {"user=a": {KEY: 1000.0}, "user=b": {KEY: 3.0}}


def test_nothing_is_promised_without_a_plan(lab: Lab) -> None:
    """If no broker responds, no screen tells how many changes go back: nobody knows them yet."""
    run = reconcile(lab, {"user=a": {KEY: 1000.0}}, "c1")
    lab.connection_file.write_text("bootstrap.servers=127.0.0.1:1\n")

    ended = lab.call("rollback", str(run.place), *WHY)

    assert (ended.returncode, ended.stdout.strip()) == (3, "")
    assert "Nothing was read or changed." in ended.stderr
    for words in ("rolls back", "quota-ops hold", "To keep it"):
        assert words not in lab.call("show", "last").stdout
