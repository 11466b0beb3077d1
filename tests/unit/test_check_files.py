"""check on files that are not text, not YAML, or do not belong in a cluster folder."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.desired.files import DRAFT, is_read
from quota_ops.desired.read import read_cluster, read_policy
from quota_ops.desired.yaml.source import MAX_FILE_BYTES
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Problem

CLUSTER_YAML = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
QUOTAS = "owner: payments\nquotas: [{user: alice, limits: {request_percentage: 50}}]\n"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return new_cluster(tmp_path, "demo")


def new_cluster(desired_state: Path, name: str, text: str = CLUSTER_YAML) -> Path:
    """Create a cluster folder with a cluster.yaml."""
    folder = desired_state / name
    folder.mkdir()
    (folder / "cluster.yaml").write_text(text)
    return folder


def problems_of(folder: Path) -> list[Problem]:
    """Return the problems of a cluster, with file names relative to its folder."""
    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(folder)
    return list(caught.value.problems)


def says(folder: Path) -> list[str]:
    """Return the problems of a cluster as text, without the path to its folder."""
    return [str(problem).replace(f"{folder}/", "") for problem in problems_of(folder)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            "owner: payments\nquotas: []\n".encode("utf-16"),
            "a.yaml:1:1  The file is UTF-16. Save it as UTF-8.",
            id="UTF-16",
        ),
        pytest.param(
            "owner: zoë\n# é".encode("latin-1"),
            "a.yaml:1:10  The byte 0xeb is not valid UTF-8. Save the file as UTF-8.",
            id="Latin-1",
        ),
        pytest.param(
            "owner: zoë\r\n# ".encode() + b"\xff",
            "a.yaml:2:3  The byte 0xff is not valid UTF-8. Save the file as UTF-8.",
            id="a byte that is no UTF-8 on the second line",
        ),
        pytest.param(
            b"PK\x03\x04\x00\x00",
            "a.yaml:1:3  This is the invisible character U+0003."
            ' Remove it; if a name contains it, write it as "\\u0003" in double quotes.',
            id="a zip",
        ),
        pytest.param(
            b"[" * 100_000,
            "a.yaml:1:20  This is nested more than 20 levels deep. Use fewer levels.",
            id="a hundred thousand brackets",
        ),
        pytest.param(
            b"- " * 100_000,
            "a.yaml:1:39  This is nested more than 20 levels deep. Use fewer levels.",
            id="a hundred thousand dashes",
        ),
        pytest.param(
            b"{a: " * 100_000,
            "a.yaml:1:77  This is nested more than 20 levels deep. Use fewer levels.",
            id="a hundred thousand braces",
        ),
    ],
)
def test_a_file_that_is_no_yaml_text_is_refused(folder: Path, data: bytes, expected: str) -> None:
    """A file that is not UTF-8, not text or nested too deeply is a problem with its place."""
    (folder / "a.yaml").write_bytes(data)

    assert [expected] == says(folder)


def test_a_huge_file_is_refused_unread(folder: Path) -> None:
    """A file larger than any desired state is not read."""
    with (folder / "a.yaml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 2**20)

    expected = "The file is 17 MiB large; quota-ops reads up to 16 MiB. Split it by team."
    assert [f"a.yaml:1:1  {expected}"] == says(folder)


def test_a_long_name_is_refused_and_shown_short(folder: Path) -> None:
    """A name too long for the protocol is rejected, and shown shortened."""
    (folder / "a.yaml").write_text(QUOTAS.replace("alice", "é" * 20_000))

    [problem] = problems_of(folder)

    assert problem == Problem(
        f"{folder}/a.yaml",
        2,
        17,
        f"user {'é' * 60}… is 40,000 bytes long; Kafka allows 32,767.",
        None,
        f"quotas: [{{user: {'é' * 144}…",
        145,
    )


def test_the_longest_name_is_read(folder: Path) -> None:
    """A name of exactly the length that the protocol allows is read."""
    name = "é" * 16_383 + "x"
    (folder / "a.yaml").write_text(QUOTAS.replace("alice", name))

    assert [f"user={name}"] == [row.entity for row in read_cluster(folder).rows]


def test_a_place_far_to_the_right_has_no_excerpt(folder: Path) -> None:
    """A problem in the middle of a very long line has a place but no excerpt."""
    (folder / "a.yaml").write_text(f'{{"owner": "{"x" * 200}", "quotas": 1}}')

    [problem] = problems_of(folder)

    assert (problem.column, problem.excerpt, problem.length) == (225, None, 1)


@pytest.mark.parametrize(
    "name", ["quotas.txt", "payments.yaml.bak", ".DS_Store", "a.YAML", "LICENSE", ".gitlab"]
)
def test_any_other_file_is_an_error_that_names_it(folder: Path, name: str) -> None:
    """A file that is neither YAML nor Markdown may be a misnamed quotas file, so it is rejected."""
    (folder / name).touch()

    assert [
        (
            f"{name}:1:1  The file is neither YAML nor Markdown."
            " If it contains quotas, rename it to .yaml; otherwise move it out of this folder."
        )
    ] == says(folder)


def test_markdown_and_files_of_git_are_left_alone(folder: Path) -> None:
    """Markdown, and Git's own files and folder, contain no quotas."""
    (folder / "README.md").write_bytes(b"\xff")
    for name in (".gitattributes", ".gitignore", ".gitkeep"):
        (folder / name).touch()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").touch()

    assert (read_cluster(folder).rows, read_cluster(folder).files) == ((), 1)


KILLED = """
import os, sys
from pathlib import Path
from quota_ops.desired.export import disk
renames = iter((os.rename, lambda *names, **folders: os._exit(9)))
os.rename = lambda *names, **folders: next(renames)(*names, **folders)
files = dict.fromkeys(("a.yaml", "b.yaml"), b"# no quotas\\n")
disk.write_files(Path(sys.argv[1]), files, replaced=files)
"""


def test_what_a_killed_command_leaves_is_left_alone(folder: Path) -> None:
    """A command that is killed between two files leaves old and new ones, and none that stops."""
    for name, user in (("a.yaml", "anna"), ("b.yaml", "ben")):
        (folder / name).write_text(QUOTAS.replace("alice", user))
    assert subprocess.run([sys.executable, "-c", KILLED, folder], check=False).returncode == 9

    (left,) = folder.glob(".*")
    assert left.name.startswith(DRAFT)
    assert not is_read(left.name)
    assert says(folder) == ["a.yaml:1:1  The file is empty. Add its fields, or remove the file."]
    assert (folder / "b.yaml").read_text() == QUOTAS.replace("alice", "ben")


def test_links_are_refused(folder: Path, tmp_path: Path) -> None:
    """A link is rejected, whether it leads to a file, to a folder or nowhere."""
    (tmp_path / "elsewhere.yaml").write_text(QUOTAS)
    (folder / "file.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "nowhere.yaml").symlink_to(tmp_path / "nothing")
    problem = "This is a link, and quota-ops follows no links. Replace it with its target."
    assert [
        f"file.yaml:1:1  {problem}",
        f"folder:1:1  {problem}",
        f"nowhere.yaml:1:1  {problem}",
    ] == says(folder)


def test_what_is_no_plain_file_is_refused(folder: Path) -> None:
    """A pipe is rejected before any read can block on it."""
    (folder / "cluster.yaml").unlink()
    os.mkfifo(folder / "cluster.yaml")
    os.mkfifo(folder / "pipe.yaml")
    assert says(folder) == [
        "cluster.yaml:1:1  This is not a regular file. Remove it.",
        "pipe.yaml:1:1  This is not a regular file. Remove it.",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"caf\xe9.yaml", "caf\\udce9.yaml"), (b"a\x1b[31m.yaml", "a\\x1b[31m.yaml")],
    ids=["not UTF-8", "a terminal escape"],
)
def test_a_file_name_that_cannot_be_shown_is_refused(folder: Path, name: bytes, shown: str) -> None:
    """A file with an unprintable name is rejected, and shown with the name escaped."""
    (folder / os.fsdecode(name)).write_text(QUOTAS)
    expected = f"{shown}:1:1  The name of the file contains unprintable characters. Rename it."
    assert [expected] == says(folder)


def test_a_folder_in_place_of_cluster_yaml_is_refused(folder: Path) -> None:
    """A cluster.yaml that cannot be opened as a file is a problem with the reason."""
    (folder / "cluster.yaml").unlink()
    (folder / "cluster.yaml").mkdir()
    assert says(folder) == ["cluster.yaml:1:1  The file cannot be read: Is a directory."]


@pytest.fixture(name="unprivileged")
def _unprivileged() -> Iterator[Path]:
    """Create a folder, and drop the privileges to read it, even where tests run as root."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        is_root = os.geteuid() == 0
        yield Path(root)
        if is_root:
            os.seteuid(0)


def test_a_folder_and_a_file_that_may_not_be_read_stop_the_cluster(unprivileged: Path) -> None:
    """Unreadable quotas are problems, so that they never look removed."""
    folder = new_cluster(unprivileged, "demo")
    (folder / "secret").mkdir()
    (folder / "secret").chmod(0)
    (folder / "team.yaml").write_text(QUOTAS)
    (folder / "team.yaml").chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65_534)

    assert says(folder) == [
        "secret:1:1  The folder cannot be read: Permission denied.",
        "team.yaml:1:1  The file cannot be read: Permission denied.",
    ]


def test_what_was_read_is_counted_beside_the_problems(folder: Path) -> None:
    """The error carries the number of files and quotas read, for the last sentence."""
    (folder / "a.yaml").write_text(QUOTAS)
    (folder / "b.yaml").write_text(QUOTAS)
    with pytest.raises(InvalidDesiredState) as caught:
        read_cluster(folder)
    assert (caught.value.files, caught.value.quotas, len(caught.value.problems)) == (3, 2, 1)


def test_places_are_given_as_the_folder_was_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative folder gives relative places, so that an editor opens them with a click."""
    (folder / "a.yaml").write_text(QUOTAS.replace("alice", "yes"))
    monkeypatch.chdir(folder.parent)

    assert problems_of(Path("demo"))[0].place == "demo/a.yaml:2:17"
    assert read_policy(Path("demo")).cluster == "demo"
