"""Desired state from a cluster: no quota is lost, and nothing is left to change."""

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from quota_ops.cli import main
from quota_ops.desired.export.imported import GroupBy, group_of, import_quotas, with_protected
from quota_ops.desired.export.quotas_text import LeftOut, split_writable
from quota_ops.desired.read import read_cluster
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, explain_unalterable
from quota_ops.model.quotas.rows import StoredQuota
from tests.yaml_cases import load_yaml

FOLDER = Path(__file__).parents[1] / "cases" / "import"
CLUSTER_YAML = "cluster_id: A\nconnection: demo\n"
POLICY = Policy("demo", "A", "demo")


def cases(name: str) -> Any:
    """Return the cases of a file."""
    return load_yaml((FOLDER / f"{name}.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", cases("groups"), ids=lambda case: str(Entity.of(case["entity"])))
def test_the_file_of_an_entity(case: Any) -> None:
    """Each grouping gives one file name, valid on every file system, and never cluster.yaml."""
    entity = Entity.of(case["entity"])

    assert {by: group_of(entity, by) for by in GroupBy} == {by: case[by] for by in GroupBy}


@pytest.mark.parametrize("case", cases("protect"), ids=lambda case: str(case["case"]))
def test_what_is_protected_is_written_where_people_would(case: Any) -> None:
    """The entries are added where a person would write them, and no other character changes."""
    bob = LeftOut(Entity.of({"user": "bob"}), "why", protect=True)

    assert with_protected(case["before"], [bob]) == case["after"]


NAMES = (
    st.none()
    | st.text(min_size=1, max_size=8)
    | st.sampled_from(
        [
            "any",
            "null",
            "\u3164",
            "red\u2764\ufe0f",
            "1e3",
            "yes",
            "2026-01-01",
            "<default>",
            "a: b",
            "#x",
            "'",
            "-",
            "{}",
            "\x00",
        ]
    )
)
ADDRESSES = (
    st.none()
    | st.ip_addresses().map(str)
    | st.sampled_from(
        ["::1", "0:0:0:0:0:0:0:1", "localhost", "10", "::ffff:1.2.3.4", "1.2.3.4", "fe80::1%\n"]
    )
)
CLIENTS = st.dictionaries(st.sampled_from(["user", "client-id"]), NAMES, min_size=1)
ODD = st.dictionaries(st.sampled_from(["client-id-prefix", "user", "ip"]), NAMES, min_size=1)
ENTITIES = CLIENTS | ADDRESSES.map(lambda name: {"ip": name}) | ODD
VALUES = (
    st.floats(min_value=0)
    | st.integers(1, 2**53).map(float)
    | st.integers(1, 2**13).map(lambda number: number * 2.0**20)
    | st.sampled_from([nan, inf, 2.0**63, 2147483647.0, 1235.0000001, 1e-7, 0.1 + 0.2])
)
KEYS = st.sampled_from([*QUOTA_KEYS, "future_key"])
STORED = st.dictionaries(st.tuples(ENTITIES.map(Entity.of), KEYS), VALUES, max_size=12).map(
    lambda rows: tuple(StoredQuota(entity, key, value) for (entity, key), value in rows.items())
)


@settings(max_examples=50, deadline=None)
@given(stored=STORED, by=st.sampled_from(GroupBy))
def test_every_row_is_asked_for_protected_or_nobodys_to_alter(
    tmp_path_factory: pytest.TempPathFactory, stored: tuple[StoredQuota, ...], by: GroupBy
) -> None:
    """Check reads from the files what was stored, except the rows that are left out and listed."""
    imported = import_quotas(stored, cluster_file=CLUSTER_YAML, policy=POLICY, by=by, owner=None)
    folder = tmp_path_factory.mktemp("demo")
    for name, text in imported.files.items():
        (folder / name).write_text(text, "utf-8", newline="")

    desired = read_cluster(folder)

    asked = {(row.entity, row.key): row.value for row in desired.rows}
    for row in stored:
        protected = any(entry.accepts(row.entity) for entry in desired.policy.protect)
        untouched = explain_unalterable(row.entity.types, row.key) is not None
        named_any = "any" in row.entity.as_dict().values() and row.entity in {
            quota.entity for quota in imported.left_out
        }
        assert (asked.pop((row.entity.text, row.key), None) == row.value) != (
            protected or untouched or named_any
        )
    assert asked == {}
    assert len(desired.policy.protect) == len(
        {quota.entity for quota in imported.left_out if quota.protect}
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("::1", "[0:0::1]"),
        ("10.0.0.1", "010.0.0.1"),
        ("0.0.0.10", "10"),
        ("1.2.0.3", "1.2.3"),
        ("127.0.0.1", "2130706433"),
        ("1.2.3.4", "::ffff:1.2.3.4"),
    ],
)
def test_two_spellings_of_an_address_are_both_left_out(one: str, other: str) -> None:
    """Brokers apply the one changed last, so a file can keep neither."""
    entities = [Entity.of({"ip": name}) for name in (one, other, "192.0.2.1")]
    stored = [StoredQuota(entity, "connection_creation_rate", 5.0) for entity in entities]

    writable, left_out = split_writable(stored)

    assert [found.entity for found in writable] == entities[2:]
    assert {found.entity for found in left_out} == set(entities[:2])
    assert all("the same address as" in found.reason for found in left_out)


SNAPSHOT = """\
{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1572864.0}
{"entity": {"user": "alice"}, "key": "request_percentage", "value": 12.5}
{"entity": {"user": "etl"}, "key": "consumer_byte_rate", "value": 9.223372036854776e+18}
{"entity": {"user": "bob", "client-id": null}, "key": "request_percentage", "value": "nan"}
{"entity": {"ip": "localhost"}, "key": "connection_creation_rate", "value": 5}
{"entity": {"client-id-prefix": "a"}, "key": "producer_byte_rate", "value": 5}
{"entity": {"user": "kafka-operator"}, "key": "producer_byte_rate", "value": 5}
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a cluster folder with a policy and no quotas, and a snapshot beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    Path("snapshot.jsonl").write_text(SNAPSHOT)
    folder = Path("desired_state") / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"{CLUSTER_YAML}protect:\n  - {{user: kafka-operator}}\n")
    return folder


def run(command: str, *arguments: str) -> Result:
    """Run a command on the snapshot."""
    line = [command, "demo", "--actual", "snapshot.jsonl", *arguments]
    return CliRunner().invoke(main, line)


def test_import_and_then_a_plan(folder: Path) -> None:
    """An import gives readable files with every reason, and a plan with nothing to write."""
    assert run("import", "--owner", "platform").stdout.splitlines() == [
        "left alone: client-id-prefix=a  producer_byte_rate: unknown entity type client-id-prefix",
        (
            "protected: client-id=<default>,user=bob  request_percentage is nan, which YAML "
            "cannot declare"
        ),
        (
            "protected: ip=localhost  localhost is not an IP address. Write it in digits: "
            "brokers may resolve a host name differently, or not at all."
        ),
        "1 more is already protected or out of scope in cluster.yaml",
        "desired_state/demo: 3 quotas of 7 stored ones in 1 file",
    ]
    assert (folder / "users.yaml").read_text() == (
        "owner: platform\n"
        "\n"
        "quotas:\n"
        "  - user: alice\n"
        "    limits:\n"
        "      producer_byte_rate: 1.5 MiB\n"
        "      request_percentage: 12.5\n"
        "  - user: etl\n"
        "    limits:\n"
        "      consumer_byte_rate: unlimited\n"
    )
    plan = json.loads(run("plan", "--format", "json").stdout)
    assert {(one["kind"], one["action"]) for one in plan["rows"]} == {
        ("in_sync", "record"),
        ("unmanaged", "report"),
    }


def test_import_writes_over_nothing(folder: Path) -> None:
    """Existing quotas files are never replaced."""
    (folder / "team.yaml").write_text("owner: team\nquotas: []\n")
    result = run("import")

    assert result.exit_code == 2
    assert result.stderr == (
        "desired_state/demo already has desired state: team.yaml\n"
        "  Choose a folder without quotas with --into.\n"
    )
    assert run("import", "--into", "elsewhere").exit_code == 0
    assert sorted(path.name for path in Path("elsewhere").iterdir()) == [
        "cluster.yaml",
        "users.yaml",
    ]


def test_import_of_files_of_other_tools(folder: Path) -> None:
    """Quotas of other tools become files without a cluster; a folder without cluster.yaml fails."""
    Path("described.txt").write_text(
        "Quota configs for user-principal 'alice' are producer_byte_rate=1048576.0\n"
    )
    Path("user.yaml").write_text(
        "kind: KafkaUser\nmetadata: {name: bob}\nspec: {quotas: {requestPercentage: 50}}\n"
    )
    files = ["--from", "kafka-configs", "described.txt", "--from", "strimzi", "user.yaml"]
    found = CliRunner().invoke(main, ["import", "demo", *files])
    assert found.stdout == "desired_state/demo: 2 quotas of 2 found in 1 file\n"
    assert (folder / "users.yaml").read_text().splitlines()[3:] == [
        "  - user: alice",
        "    limits:",
        "      producer_byte_rate: 1 MiB",
        "  - user: bob",
        "    limits:",
        "      request_percentage: 50",
    ]

    failed = CliRunner().invoke(main, ["import", "other", *files])
    assert (failed.exit_code, failed.stderr.splitlines()[0]) == (2, "other has no cluster.yaml")


def test_import_of_unmanaged_quotas(folder: Path) -> None:
    """Only what no file declares is written, into new files; a key of a declared entity is not."""
    text = "owner: a\nquotas: [{user: alice, limits: {producer_byte_rate: 1 MiB}}]\n"
    (folder / "users.yaml").write_text(text)
    lines = run("import", "--unmanaged").stdout.splitlines()
    assert lines[0] == "not written: user=alice request_percentage: add it to users.yaml:2"
    assert lines[-1] == "desired_state/demo: 1 quota of 5 stored ones in 1 file"
    assert (folder / "users.yaml").read_text() == text
    assert (folder / "unmanaged-users.yaml").read_text().splitlines()[3:] == [
        "  - user: etl",
        "    limits:",
        "      consumer_byte_rate: unlimited",
    ]
    again = run("import", "--unmanaged").stdout.splitlines()
    assert again[-1] == "desired_state/demo: no quota that a file can declare is unmanaged"


PROFILES = """\
cluster_id: A
connection: demo

profiles:
  profile-1:
    producer_byte_rate: 1 MiB
    consumer_byte_rate: 2 MiB
"""
WITH_PROFILE = """\
owner: unassigned

quotas:
  - user: a
    profile: profile-1
  - user: b
    profile: profile-1
  - user: c
    profile: profile-1
  - user: d
    limits:
      producer_byte_rate: 1 MiB
"""


def test_profiles_are_proposed_on_request(tmp_path: Path) -> None:
    """Equal limits of three entities become a profile, and the files declare the same rows."""
    both = {"producer_byte_rate": 2.0**20, "consumer_byte_rate": 2.0**21}
    stored = [
        StoredQuota(Entity.of({"user": user}), key, value)
        for user, keys in (("a", both), ("b", both), ("c", both), ("d", dict([*both.items()][:1])))
        for key, value in keys.items()
    ]
    imported = import_quotas(
        stored,
        cluster_file=CLUSTER_YAML,
        policy=POLICY,
        by=GroupBy.TYPE,
        owner=None,
        with_profiles=True,
    )

    assert imported.files == {"cluster.yaml": PROFILES, "users.yaml": WITH_PROFILE}
    for name, text in imported.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    rows = {(row.entity, row.key, row.value) for row in read_cluster(tmp_path).rows}
    assert rows == {(row.entity.text, row.key, row.value) for row in stored}
    with pytest.raises(InvalidInput, match="already has profiles"):
        import_quotas(
            stored,
            cluster_file=PROFILES,
            policy=POLICY,
            by=GroupBy.TYPE,
            owner=None,
            with_profiles=True,
        )


WITH_GROUPS = """\
owner: etl

quotas:
  - client-id: etl-other
    limits:
      producer_byte_rate: 3 MiB

groups:
  - name: etl
    members:
      - {user: etl-3, client-id: app}
      - {user: etl-1}
      - {user: etl-2}
    budget:
      producer_byte_rate: 3 MiB
"""


def test_groups_are_proposed_on_request(tmp_path: Path) -> None:
    """Equal limits of three names of a file become one budget, and the rows stay the same.

    Defaults, unlimited quotas and fractions of a percent cannot share a budget.
    """
    unlimited = QUOTA_KEYS["producer_byte_rate"].unlimited
    rows = [
        ({"user": "etl-1"}, "producer_byte_rate", 2.0**20),
        ({"user": "etl-2"}, "producer_byte_rate", 2.0**20),
        ({"user": "etl-3", "client-id": "app"}, "producer_byte_rate", 2.0**20),
        ({"client-id": "etl-other"}, "producer_byte_rate", 3 * 2.0**20),
        *(({"user": f"none-{number}"}, "producer_byte_rate", unlimited) for number in range(3)),
        *(({"user": f"part-{number}"}, "request_percentage", 0.5) for number in range(3)),
    ]
    stored = [StoredQuota(Entity.of(names), key, value) for names, key, value in rows]
    imported = import_quotas(
        stored,
        cluster_file=CLUSTER_YAML,
        policy=POLICY,
        by=GroupBy.PREFIX,
        owner=None,
        with_groups=True,
    )

    assert imported.files["etl.yaml"] == WITH_GROUPS
    assert "groups:" not in imported.files["none.yaml"] + imported.files["part.yaml"]
    for name, text in imported.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    found = {(row.entity, row.key, row.value) for row in read_cluster(tmp_path).rows}
    assert found == {(row.entity.text, row.key, row.value) for row in stored}
