"""A commit can be arbitrarily large; what check does with it is bounded."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired import files
from quota_ops.desired.read import read_cluster
from quota_ops.desired.yaml import checkout
from quota_ops.desired.yaml.nodes import SizeBudget
from quota_ops.model.errors import InvalidDesiredState

CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
QUOTAS = "owner: payments\nquotas: [{user: alice, limits: {request_percentage: 50}}]\n"
MEMORY = 640 * 2**20
"""Address space of a process that checks; the machine's own libraries take a part of it."""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(CLUSTER_YAML)
    return folder


def refused(folder: Path) -> InvalidDesiredState:
    """Return the error for a cluster's files."""
    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(folder)
    return caught.value


def says(folder: Path) -> list[str]:
    """Return the lines of the error, without the path to the folder."""
    return [line.replace(f"{folder}/", "") for line in str(refused(folder)).splitlines()]


def test_the_problems_of_a_file_are_listed_up_to_a_hundred(folder: Path) -> None:
    """A hundred problems of a file are listed and the others counted, on screen and in JSON."""
    (folder / "a.yaml").write_text("{" + "a," * 5_000 + "}")
    (folder / "b.yaml").write_text("owner: b\nquotas: 1\n")

    check = ("check", "--desired-state", str(folder.parent))
    text = CliRunner().invoke(main, check)
    json = CliRunner().invoke(main, [*check, "--format", "json"])

    error = refused(folder)
    assert (len(error.problems), error.unlisted) == (101, 4_902)
    assert error.problems[-1].message == "quotas must be a list."
    assert str(error).endswith("\n4,902 more are not listed")
    assert text.output.splitlines()[-2:] == [
        "… and 4,902 more problems",
        "5,003 problems in 2 of 3 files (0 quotas read)",
    ]
    assert '"unlisted_problems": 4902,' in json.output


def test_the_problems_of_a_cluster_are_listed_up_to_a_thousand(folder: Path) -> None:
    """Many files with many problems are bounded like one file."""
    for name in "abcdefghijklmn":
        (folder / f"{name}.yaml").write_text("{" + "a," * 200 + "}")

    error = refused(folder)

    assert (len(error.problems), error.unlisted) == (1_000, 14 * 202 - 1_000)


def test_every_file_with_a_problem_is_counted(folder: Path) -> None:
    """Files whose problems are not listed are counted too, and all numbers have the same format."""
    for number in range(1_200):
        (folder / f"{number:04}.yaml").write_text("owner: a\nquotas: 1\nmore: 2\n")

    text = CliRunner().invoke(main, ["check", "--desired-state", str(folder.parent)])

    assert text.output.splitlines()[-2:] == [
        "… and 1,400 more problems",
        "2,400 problems in 1,200 of 1,201 files (0 quotas read)",
    ]


def test_a_megabyte_of_problems_takes_little_memory(folder: Path) -> None:
    """Half a million problems in one file give a short error, in a process with little memory."""
    (folder / "a.yaml").write_text("{" + "a," * 500_000 + "}")

    ended = subprocess.run(
        [sys.executable, "-m", "quota_ops", "check", "--desired-state", folder.parent],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        capture_output=True,
        check=False,
        env=dict(os.environ),
    )

    assert ended.returncode == 2, ended.stderr
    assert ended.stdout.endswith(b"500,002 problems in 1 of 2 files (0 quotas read)\n")
    assert len(ended.stdout) < 50_000


def test_a_long_message_is_cut(folder: Path) -> None:
    """A long name is not repeated in full by each problem that mentions it."""
    name = "x" * 30_000
    entry = f"- {{user: {name}, limits: {{request_percentage: 1}}}}\n"
    (folder / "a.yaml").write_text(f"owner: a\nquotas:\n{entry * 2}")

    (problem,) = refused(folder).problems

    assert len(problem.message) == 1_001


def test_values_are_counted_over_all_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that exceeds the limit is named, and no file after it is read."""
    monkeypatch.setattr(SizeBudget.__init__, "__defaults__", (30, 2**20))
    for name in "abcd":
        (folder / f"{name}.yaml").write_text(QUOTAS.replace("alice", name))

    (said,) = says(folder)
    assert said == (
        "c.yaml:2:10  Up to here, the cluster's files contain more than 2,000,000 values. "
        "Remove entries that you do not need."
    )


def test_text_is_counted_over_all_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments count too, because they are read as well."""
    monkeypatch.setattr(SizeBudget.__init__, "__defaults__", (1_000, 2 * len(QUOTAS)))
    for name in "abcd":
        (folder / f"{name}.yaml").write_text(QUOTAS.replace("alice", f"user{name}"))

    (said,) = says(folder)
    assert said == (
        "c.yaml:1:1  Up to here, the cluster's files contain more than 64 MiB of text. "
        "Remove entries that you do not need."
    )


def test_folders_are_nested_up_to_twenty_deep(folder: Path) -> None:
    """A folder tree deeper than the longest possible path is rejected at the depth limit."""
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)

    deep = "d/" * 20
    assert says(folder) == [
        f"{deep}d:1:1  The folder is nested more than 20 levels deep. Move its files further up."
    ]
    ended = CliRunner().invoke(main, ["check", "--desired-state", str(folder.parent)])
    assert ended.exit_code == 2
    subprocess.run(["rm", "-rf", folder], check=True)  # noqa: S607 - shutil recurses


def test_files_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with more files than any team needs is rejected before any file is read."""
    for name in "abcd":
        (folder / f"{name}.yaml").touch()

    monkeypatch.setattr(files, "MAX_LISTED", 4)
    listed = [str(problem) for problem in refused(folder).problems]
    monkeypatch.setattr(checkout, "MAX_ENTRIES", 4)
    held = [str(problem) for problem in refused(folder).problems]

    assert listed == [
        f"{folder}:1:1  The folder contains more than 4 files. Keep one file per team."
    ]
    assert held == [f"{folder}:1:1  The folder cannot be read: It contains more than 4 files."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"schedule: {'9' * 5_000} * * * *",
            "cluster.yaml:3:11  schedule must be five cron fields, or one of @hourly, @daily, "
            "@weekly, @monthly, @quarterly, @yearly. "
            'For example schedule: "*/30 * * * *", every half hour.',
            id="a number of five thousand digits",
        ),
        pytest.param(
            f"schedule: {'1,' * 100}1 * * * *",
            "cluster.yaml:3:11  schedule must be five cron fields, or one of @hourly, @daily, "
            "@weekly, @monthly, @quarterly, @yearly. "
            'For example schedule: "*/30 * * * *", every half hour.',
            id="a cron expression of more than 200 characters",
        ),
        pytest.param(
            f"paused: {'x' * 1_001}",
            "cluster.yaml:3:9  paused is 1,001 characters long. Write at most 1,000.",
            id="a reason of more than 1,000 characters",
        ),
        pytest.param(
            f"freeze: [{'{}, ' * 101}]",
            "cluster.yaml:3:1  freeze has 101 windows. "
            "Write at most 100; a cron field takes ranges, for example 1-5.",
            id="more than 100 windows",
        ),
    ],
)
def test_what_is_longer_than_anybody_needs_is_refused(
    folder: Path, text: str, expected: str
) -> None:
    """Texts that reports repeat, and numbers of absurd length, are rejected with their line."""
    (folder / "cluster.yaml").write_text(f"{CLUSTER_YAML}{text}\n")

    assert says(folder) == [expected]


def test_an_owner_is_bounded_because_each_row_repeats_it(folder: Path) -> None:
    """An owner of one megabyte would cost a megabyte in each row of a plan."""
    (folder / "a.yaml").write_text(QUOTAS.replace("payments", "x" * 2**20))

    assert says(folder) == ["a.yaml:1:8  owner is 1,048,576 characters long. Write at most 1,000."]


def test_a_scope_of_many_entries_is_named_short(folder: Path) -> None:
    """A problem names ten entries of the scope for each quota, not all of them."""
    scope = "".join(f"- {{user: u{number}, client-id: any}}\n" for number in range(2_000))
    (folder / "cluster.yaml").write_text(f"{CLUSTER_YAML}scope:\n{scope}")
    (folder / "a.yaml").write_text(QUOTAS)

    (problem,) = refused(folder).problems

    listed = ", ".join(f"client-id=<any>,user=u{number}" for number in range(10))
    assert problem.remedy == f"{folder}/cluster.yaml allows {listed} and 1,990 more."
