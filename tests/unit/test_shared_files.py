"""Files that several clusters share: read for each, compared with Git, and reviewed for all."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.desired.read import find_clusters_that_use, read_cluster
from quota_ops.model.errors import InvalidDesiredState
from tests.repositories import commit_all, found, git, uncommitted


@pytest.fixture(name="desired_state")
def _desired_state(tmp_path: Path) -> Path:
    """Write two clusters that use a shared file, one of them less than a third as large."""
    root = tmp_path / "desired_state"
    for name, use in (("large", "gold.yaml"), ("small", "{file: gold.yaml, factor: 0.3}")):
        (root / name).mkdir(parents=True)
        text = f"cluster_id: {name}\nconnection: demo\nuse: [{use}]\n"
        (root / name / "cluster.yaml").write_text(text)
        (root / name / "team.yaml").write_text(
            "owner: team\nquotas:\n  - {user: alice, profile: gold}\n"
        )
    (root / "_shared").mkdir()
    (root / "_shared" / "gold.yaml").write_text(
        "profiles:\n  gold: {producer_byte_rate: 15, request_percentage: 33.3}\n"
        "  all: {consumer_byte_rate: unlimited}\n"
    )
    return root


def test_each_cluster_has_the_limits_times_its_factor(desired_state: Path) -> None:
    """A factor multiplies the limits; whole numbers are rounded down, and unlimited stays."""
    found = {
        name: [(row.value, row.derivation) for row in read_cluster(desired_state / name).rows]
        for name in ("large", "small")
    }

    place = "profile gold (../_shared/gold.yaml:2"
    assert found == {
        "large": [(15.0, f"{place})"), (33.3, f"{place})")],
        "small": [(4.0, f"{place}, times 0.3)"), (9.99, f"{place}, times 0.3)")],
    }


def problems_of(folder: Path) -> list[str]:
    """Return the problems of a cluster: place, message, [cluster] if shared, and remedy."""
    with pytest.raises(InvalidDesiredState) as refused:
        read_cluster(folder)
    texts = (
        f"{problem.place} {problem.message} {problem.remedy}" for problem in refused.value.problems
    )
    shared = f" The cluster {folder.name} uses this file."
    return sorted(
        text.replace(f"{folder.parent}/", "").replace(shared, f" [{folder.name}]") for text in texts
    )


def test_problems_show_the_shared_line_and_the_cluster(desired_state: Path) -> None:
    """A problem of a shared file names its line and the cluster that uses it."""
    shared = desired_state / "_shared" / "gold.yaml"
    shared.write_text(
        "profiles:\n  gold: {producer_byte_rate: 1}\n  silver: {producer_byterate: 1}\nquotas: []\n"
    )
    file = "_shared/gold.yaml"

    assert problems_of(desired_state / "small") == [
        (
            f"{file}:2:10 producer_byte_rate times 0.3 is 0, which is not a limit. [small] Kafka"
            " has no quota of 0."
        ),
        (
            f"{file}:3:12 producer_byterate is not a field of a profile. [small] Did you mean"
            " producer_byte_rate?"
        ),
        f"{file}:4:1 quotas is not a field of a shared file. [small] Valid fields: profiles.",
    ]


def test_shared_files_that_are_missing_or_repeated(desired_state: Path) -> None:
    """A missing file, one that is listed twice, and a profile with two definitions are problems."""
    file = desired_state / "large" / "cluster.yaml"
    text = "cluster_id: large\nconnection: demo\n"
    file.write_text(f"{text}use: [gold.yaml, silver.yaml]\nprofiles: {{gold: {{profile: all}}}}\n")
    assert problems_of(desired_state / "large") == [
        (
            "_shared/gold.yaml:2:3 The profile gold is defined already, at large/cluster.yaml:4. "
            "[large] Merge the two, or rename one."
        ),
        "large/cluster.yaml:3:18 There is no shared file silver.yaml. There are gold.yaml.",
    ]
    file.write_text(
        f"{text}use: [gold.yaml, gold.yaml, ../large/team.yaml, {{file: a.yaml, factor: 0}}]\n"
    )
    assert problems_of(desired_state / "large") == [
        "large/cluster.yaml:3:18 gold.yaml is listed twice. Remove one.",
        (
            "large/cluster.yaml:3:29 ../large/team.yaml is not the name of a YAML file in the "
            "folder _shared. For example use: [gold.yaml]."
        ),
        "large/cluster.yaml:3:72 factor must be above 0. None",
    ]


def test_a_link_in_place_of_a_shared_file_is_not_followed(desired_state: Path) -> None:
    """A link in the folder _shared is a problem, as everywhere in a desired state."""
    shared = desired_state / "_shared" / "gold.yaml"
    shared.rename(desired_state / "elsewhere.txt")
    shared.symlink_to(desired_state / "elsewhere.txt")

    assert problems_of(desired_state / "large")[0] == (
        "_shared/gold.yaml:1:1 This is a link, and quota-ops follows no links. [large] Replace it "
        "with its target."
    )


def test_the_folder_of_shared_files_is_no_cluster(desired_state: Path) -> None:
    """Check of all clusters lists two, and a review finds the clusters that use a file."""
    checked = CliRunner().invoke(
        main, ["check", "--desired-state", str(desired_state), "--format", "json"]
    )

    assert [one["cluster"] for one in json.loads(checked.stdout)["clusters"]] == ["large", "small"]
    clusters = ("large", "small")
    assert find_clusters_that_use(desired_state, clusters, {"gold.yaml"}) == {"large", "small"}
    assert find_clusters_that_use(desired_state, clusters, {"other.yaml"}) == set()
    (desired_state / "large" / "cluster.yaml").write_text("use: 1\n")
    assert find_clusters_that_use(desired_state, clusters, {"other.yaml"}) == {"large"}


def test_shared_files_are_compared_with_the_commit(desired_state: Path) -> None:
    """An uncommitted change of a shared file is a change of each cluster that uses it."""
    root = desired_state.parent
    git(root, "init", "--quiet")
    commit = commit_all(root)
    assert found(desired_state / "small").commit == commit

    shared = desired_state / "_shared" / "gold.yaml"
    shared.write_text(shared.read_text().replace("15", "16"))

    assert found(desired_state / "small") == uncommitted(root, "../_shared/gold.yaml")


def test_a_shared_file_that_no_cluster_uses(desired_state: Path) -> None:
    """A check of all clusters names it; a check of one, or beside an unreadable one, does not."""
    (desired_state / "_shared" / "old.yaml").write_text("profiles: {}\n")

    def check(*arguments: str) -> tuple[int, str]:
        where = ("--desired-state", str(desired_state))
        ended = CliRunner().invoke(main, ["check", *arguments, *where])
        return ended.exit_code, ended.stdout

    words = "_shared/old.yaml: no cluster uses this file. List it under use in a cluster.yaml, or"
    assert check()[0] == 0
    assert check()[1].endswith(f"{words} delete it.\n")
    assert json.loads(check("--format", "json")[1])["unused_shared_files"] == ["old.yaml"]
    assert "/old.yaml: no" not in check("large")[1]
    (desired_state / "large" / "cluster.yaml").write_text("use: [old.yaml]\n")
    assert "/old.yaml: no" not in check()[1]


def test_quotas_in_a_folder_of_that_name_elsewhere(
    desired_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of all clusters names quotas outside the desired state: no run reads them."""
    monkeypatch.chdir(desired_state.parent)
    git(desired_state.parent, "init", "--quiet")
    for name in (
        "docs/large/example.yaml",
        "docs/other/a.yaml",
        "large/notes.yaml",
        "large/a.yaml",
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("notes: {}\n" if "notes.yaml" in name else "quotas: []\n")

    def check(*arguments: str) -> tuple[int, str]:
        where = ("--desired-state", desired_state.name)
        ended = CliRunner().invoke(main, ["check", *arguments, *where])
        return ended.exit_code, ended.stdout

    code, shown = check()
    folder = f"{desired_state.name}/large"
    why = f"quotas outside {folder}, so no run reads them. Move the file there."
    files = ("docs/large/example.yaml", "large/a.yaml")
    assert (code, shown.splitlines()[-2:]) == (0, [f"{file}: {why}" for file in files])
    assert json.loads(check("--format", "json")[1])["files_outside"] == list(files)
    assert check("--strict")[0] == 2
    assert "so no run reads them" not in check("large")[1]
