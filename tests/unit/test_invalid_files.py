"""Which files a run leaves out, and which problems stop it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quota_ops.desired.read import read_cluster
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.plan import UNTIL_THEN, problems_screen

CLUSTER = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
OWNERS = "owners: {search: {files: [b.yaml]}}\n"
VALID = "owner: payments\nquotas:\n  - {user: alice, limits: {producer_byte_rate: 1 MiB}}\n"
WRONG = "owner: 'search'  # the team\nquotas:\n  - {user: bob, limts: {}}\n"


def write(folder: Path, **files: str) -> None:
    """Write the files of a cluster, each named without its suffix."""
    for name, text in ({"cluster": CLUSTER, "a": VALID, "b": WRONG} | files).items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")


def test_an_invalid_file_is_left_out_with_its_owner(tmp_path: Path) -> None:
    """Its owner is that of cluster.yaml, or of its own line; its bytes count for the commit."""
    found = {}
    for cluster, text in ((CLUSTER, WRONG), (CLUSTER, "owner: [\n"), (CLUSTER + OWNERS, WRONG[7:])):
        write(tmp_path, cluster=cluster, b=text)
        read = read_cluster(tmp_path, skip_invalid=True)
        assert [row.entity for row in read.rows] == ["user=alice"]
        assert read.contents["b.yaml"] == text.encode()
        found[cluster, text] = [file.text.split(" is invalid")[0] for file in read.invalid]

    assert list(found.values()) == [
        ["b.yaml (owner search)"],
        ["b.yaml"],
        ["b.yaml (owner search)"],
    ]


def test_nothing_is_found_that_an_invalid_file_may_disprove(tmp_path: Path) -> None:
    """It may use the profile, have the owner, and promise more: these findings wait for it."""
    cluster = (
        f"{CLUSTER}profiles: {{gold: {{producer_byte_rate: 1 MiB}}}}\n"
        "ceilings: {search: {producer_byte_rate: 9 MiB}}\n"
        "capacity: {producer_byte_rate: 16 KiB}\n"
        "silence: [{finding: QO119, reason: the team is new}]\n"
    )
    write(tmp_path, cluster=cluster)
    partial = read_cluster(tmp_path, skip_invalid=True)
    with pytest.raises(InvalidDesiredState) as checked:
        read_cluster(tmp_path)
    write(tmp_path, cluster=cluster, b=VALID.replace("alice", "bob"))
    whole = read_cluster(tmp_path)

    assert (partial.findings, checked.value.findings) == ((), ())
    assert sorted(finding.code for finding in whole.findings) == ["QO116", "QO118", "QO119"]


def test_both_files_of_a_contradiction_are_left_out(tmp_path: Path) -> None:
    """That is a user whom two files declare, also as the member of a group."""
    group = "{name: g, members: [{user: alice}], budget: {producer_byte_rate: 9 MiB}}"
    found = []
    for text in (VALID, f"owner: search\ngroups:\n  - {group}\n"):
        write(tmp_path, b=text, c=VALID.replace("alice", "carol"))
        read = read_cluster(tmp_path, skip_invalid=True)
        found.append(([file.file for file in read.invalid], [row.entity for row in read.rows]))
    write(
        tmp_path,
        cluster=f"{CLUSTER}owners: {{payments: {{users: [alice]}}}}\n",
        b=VALID.replace("payments", "x"),
    )
    foreign = read_cluster(tmp_path, skip_invalid=True)

    assert found == [(["a.yaml", "b.yaml"], ["user=carol"])] * 2
    assert [file.file for file in foreign.invalid] == ["a.yaml", "b.yaml"]


def test_check_lists_both_files_of_a_contradiction(tmp_path: Path) -> None:
    """Its problem is listed at one of them, and runs leave out the other too."""
    write(tmp_path, b=VALID, c=VALID.replace("alice", "carol"))
    with pytest.raises(InvalidDesiredState) as checked:
        read_cluster(tmp_path)

    assert plain(problems_screen(checked.value)).splitlines()[-3:] == [
        "1 problem in 1 of 4 files (3 quotas read)",
        f"Runs also leave out {tmp_path}/a.yaml, which contradicts a file above.",
        UNTIL_THEN,
    ]


STOPS: dict[str, Callable[[Path], object]] = {
    "a problem in cluster.yaml": lambda folder: write(folder, cluster=f"{CLUSTER}drift: no\n"),
    "a link": lambda folder: (folder / "c.yaml").symlink_to(folder / "a.yaml"),
    "no file is valid": lambda folder: (folder / "a.yaml").unlink(),
    "a misplaced file": lambda folder: (folder / "notes.txt").write_text("x", "utf-8"),
    "too many problems": lambda folder: write(
        folder, b=WRONG + WRONG.splitlines(keepends=True)[2] * 101
    ),
}


@pytest.mark.parametrize("harm", STOPS.values(), ids=STOPS)
def test_a_problem_elsewhere_stops_everything(
    harm: Callable[[Path], object], tmp_path: Path
) -> None:
    """No file is left out if another problem leaves open what depends on it."""
    write(tmp_path)
    harm(tmp_path)

    with pytest.raises(InvalidDesiredState):
        read_cluster(tmp_path, skip_invalid=True)
