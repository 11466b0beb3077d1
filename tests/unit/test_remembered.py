"""Checked files are remembered: parsed once, trusted only if intact and private, never an error."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired import file_cache
from quota_ops.desired.file_cache import FileCache
from quota_ops.desired.quota_lines import read_quota_lines
from quota_ops.desired.quotas_file import QuotasFile
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.desired.yaml.nodes import SizeBudget
from quota_ops.desired.yaml.source import Source
from quota_ops.model.errors import InvalidDesiredState

FILES = {
    "cluster.yaml": "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n",
    "a.yaml": "owner: a\nquotas:\n"
    "  - user: alice\n    reason: batch\n    limits: {producer_byte_rate: 2 MB}\n"
    "    silence: [{finding: QO104, reason: agreed}]\n"
    "  - user: {default: true}\n    client-id: x\n    limits: {request_percentage: 50}\n",
    "b.yaml": 'owner: b\nquotas:\n  - user: "b\\u00e9la"\n    limits: {producer_byte_rate: 1 MiB}\n'
    "  - ip: 10.0.0.1\n    limits: {connection_creation_rate: 5}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a cluster folder with two quotas files."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the quotas files that are parsed from here on."""
    names: list[str] = []

    def noting(source: Source, room: SizeBudget) -> QuotasFile | None:
        names.append(source.name)
        return read_quota_lines(source, room)

    monkeypatch.setattr(file_cache, "read_quota_lines", noting)
    return names


def read(folder: Path) -> Desired:
    """Read the folder as a command of this user does."""
    return read_cluster(folder, FileCache.of_user())


def entries() -> list[Path]:
    """Return the remembered entries."""
    return sorted(FileCache.folder_of_user().iterdir())


def test_only_a_file_that_changed_is_parsed(folder: Path, parsed: list[str]) -> None:
    """Remembered and parsed files give the same rows, findings, silences and bytes."""
    first = read(folder)
    again = read(folder)
    assert parsed == ["a.yaml", "b.yaml"]
    assert first == again == read_cluster(folder)
    assert first.findings
    assert first.silences

    del parsed[:]
    (folder / "b.yaml").write_text(FILES["b.yaml"].replace("1 MiB", "3 MiB"))
    changed = read(folder)
    assert parsed == ["b.yaml"]
    assert changed == read_cluster(folder)


def test_files_are_still_compared(folder: Path, parsed: list[str]) -> None:
    """An entity in two files, or one that cluster.yaml protects, is a problem with its place."""
    read(folder)
    (folder / "c.yaml").write_text(FILES["a.yaml"])
    (folder / "cluster.yaml").write_text(f"{FILES['cluster.yaml']}protect: [{{ip: 10.0.0.1}}]\n")
    read_problems = []
    for _ in range(2):
        with pytest.raises(InvalidDesiredState) as error:
            read(folder)
        read_problems.append(error.value.problems)
    with pytest.raises(InvalidDesiredState) as error:
        read_cluster(folder)

    assert parsed == ["a.yaml", "b.yaml", "c.yaml"] * 2  # a new file once, and all without memory
    assert read_problems == [error.value.problems] * 2
    assert [problem.place for problem in error.value.problems] == [
        f"{folder}/b.yaml:5:5",
        f"{folder}/c.yaml:3:5",
        f"{folder}/c.yaml:7:5",
    ]


def test_a_file_with_a_problem_is_shown_again(folder: Path, parsed: list[str]) -> None:
    """Only a file without problems is remembered."""
    (folder / "a.yaml").write_text(FILES["a.yaml"].replace("request_percentage", "request"))
    for _ in range(2):
        with pytest.raises(InvalidDesiredState, match="request"):
            read(folder)
    assert parsed == ["a.yaml", "b.yaml", "a.yaml"]


def test_what_the_files_of_a_cluster_may_contain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remembered files count towards the limits as parsed ones do."""
    read(folder)
    monkeypatch.setattr(file_cache, "SizeBudget", lambda: SizeBudget(values=50))
    with pytest.raises(InvalidDesiredState, match="contain more than") as error:
        read(folder)
    assert [problem.file for problem in error.value.problems] == [f"{folder}/b.yaml"]


def damage(path: Path) -> None:
    """Flip a bit."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def swap(path: Path) -> None:
    """Replace this entry by the other file's."""
    (other,) = [one for one in entries() if one != path]
    path.write_bytes(other.read_bytes())


def link(path: Path) -> None:
    """Move an entry away, and link to it."""
    path.rename(path.parents[1] / path.name)
    path.symlink_to(path.parents[1] / path.name)


def pipe(path: Path) -> None:
    """Replace an entry by a pipe."""
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    """Replace an entry by a folder."""
    path.unlink()
    (path / "full").mkdir(parents=True)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(damage, id="damaged"),
        pytest.param(swap, id="of another file"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b"nonsense" * 20), id="foreign"),
        pytest.param(lambda path: path.chmod(0o660), id="others may write"),
        pytest.param(lambda path: os.chown(path, 1, 1), id="another user's"),
        pytest.param(link, id="link"),
        pytest.param(pipe, id="pipe"),
        pytest.param(folder_instead, id="folder"),
    ],
)
def test_an_entry_that_is_not_as_it_was_left_is_ignored(
    folder: Path, parsed: list[str], harm: Callable[[Path], object]
) -> None:
    """The file is parsed without a message: a damaged entry is never an error."""
    whole = read(folder)
    for path in entries()[:1]:
        try:
            harm(path)
        except PermissionError:
            pytest.skip("only root gives files away")
    del parsed[:]
    assert (read(folder), len(parsed)) == (whole, 1)


def test_other_code_reads_for_itself(
    folder: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of quota-ops, or of the YAML parser, ignores the entries."""
    read(folder)
    monkeypatch.setattr(yaml, "__version__", "another")
    read(folder)
    assert parsed == ["a.yaml", "b.yaml"] * 2


@pytest.mark.parametrize("mode", [0o770, 0o500])
def test_a_folder_that_is_not_private_or_full(folder: Path, parsed: list[str], mode: int) -> None:
    """A folder that other users can write, or that cannot be written, is not used."""
    FileCache.folder_of_user().mkdir(parents=True)
    FileCache.folder_of_user().chmod(mode)
    assert read(folder) == read(folder)
    if mode == 0o770 or os.geteuid():
        assert (parsed, entries()) == (["a.yaml", "b.yaml"] * 2, [])


def test_what_is_kept_is_private_and_bounded(folder: Path) -> None:
    """No other user can read it, and it is removed when it grows too large."""
    read(folder)
    modes = {path.stat().st_mode & 0o777 for path in entries()}
    assert (modes, FileCache.folder_of_user().stat().st_mode & 0o777) == ({0o600}, 0o700)

    user, size = FileCache.of_user(), sum(path.stat().st_size for path in entries())
    assert user is not None
    user.trim(most_bytes=size)
    assert len(entries()) == 2
    user.trim(most_bytes=size - 1)
    assert entries() == []


def test_no_cache_neither_reads_nor_leaves_anything(folder: Path, parsed: list[str]) -> None:
    """With --no-cache every file is parsed; without it the second command parses none."""
    arguments = ["check", "--desired-state", str(folder.parent)]
    plain = CliRunner().invoke(main, [*arguments, "--no-cache"])
    assert not FileCache.folder_of_user().exists()
    runs = [CliRunner().invoke(main, arguments) for _ in range(2)]

    assert parsed == ["a.yaml", "b.yaml"] * 2
    assert [run.output for run in runs] == [plain.output] * 2
    assert plain.exit_code == 0


def test_a_time_decides_on_what_is_remembered(folder: Path, parsed: list[str]) -> None:
    """A remembered file gives the limits of the time that is asked for, with profile and list."""
    (folder / "cluster.yaml").write_text(
        FILES["cluster.yaml"] + "profiles: {silver: {request_percentage: 10}}\n"
    )
    (folder / "b.yaml").write_text(
        "owner: b\nquotas:\n  - user: [bela, cleo]\n    profile: silver\n"
        "    until: 2026-12-03T00:00Z\n    overrides:\n"
        "      - {until: 2026-12-02T00:00Z, limits: {request_percentage: 20}, reason: sale}\n"
    )
    days = ("2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", "2026-12-03T00:00:00Z")
    expected = [read_cluster(folder, at=day).rows for day in days]
    read_cluster(folder, FileCache.of_user(), at=days[2])
    parsed.clear()

    found = [read_cluster(folder, FileCache.of_user(), at=day).rows for day in days]

    assert found == expected
    assert [len(rows) for rows in found] == [4, 4, 2]
    assert parsed == []
