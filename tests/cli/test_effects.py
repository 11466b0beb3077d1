"""The clients that a plan concerns, on the command line: on a snapshot, without a broker."""

import json
from pathlib import Path

import pytest

from tests.calling import call_cli

CLUSTER = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
QUOTAS = """\
owner: team
quotas:
  - {user: alice, limits: {producer_byte_rate: 1 MiB}}
"""
SNAPSHOT = '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 2097152.0}\n'
CLIENTS = "user,client-id,owner,producer_byte_rate\nalice,app,pay,1048577\nbob,x,,1\n"
HOSTILE = "user,client-id,owner\nalice,=HYPERLINK(1),+pay\n"
FORMULAS = (
    "2 cells would be a formula in a spreadsheet, such as =HYPERLINK(1): "
    "import the file with all columns as text, or use JSON Lines\n"
)
OF_ALICE, USE = "MiB/s of user=alice (user)", "1.05 MB/s: would be throttled"
NUMBERS = (
    "owner clients newly limited cut may get less may get more shared differently raised "
    "no longer limited would be throttled"
)
CUT = "Of 2 clients in the inventory: 1 cut. 1 of them uses more than its new limit.\n"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Create a cluster whose plan cuts the limit of alice, and its snapshot."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"{CLUSTER}inventory: clients.csv\n", "utf-8")
    (folder / "team.yaml").write_text(QUOTAS, "utf-8")
    (folder / "clients.csv").write_text(CLIENTS, "utf-8")
    (tmp_path / "snapshot.jsonl").write_text(SNAPSHOT, "utf-8")
    return folder


def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Return the exit code, standard output and the error of a command on the snapshot."""
    root = folder.parents[1]
    offline = () if "--run" in arguments else ("demo", "--actual", "snapshot.jsonl")
    command, *others = arguments
    environment = {"QUOTA_OPS_RUN_STORE": str(root / "store"), "HOME": str(root)}
    ended = call_cli([command, *offline, *others], environment, root)
    return ended.returncode, ended.stdout, ended.stderr


def test_a_table_for_people(folder: Path) -> None:
    """Each client whose limit changes has a line; then come numbers by owner, and a sentence."""
    code, shown, _ = call(folder, "effects")

    heading, *lines = shown.splitlines(keepends=True)
    assert (code, heading[:30]) == (0, "demo (MkU3OEVBNTcwNTJENDM2Qg) ")
    assert [" ".join(line.split()) for line in lines[:-1]] == [
        "",
        "verdict user client id key current desired use owner",
        f"cut alice app producer_byte_rate 2 {OF_ALICE} 1 {OF_ALICE} {USE} pay",
        "",
        NUMBERS,
        "pay 1 0 1 0 0 0 0 0 1",
        "",
    ]
    assert lines[-1] == CUT


def test_every_limit(folder: Path) -> None:
    """--all also lists the limits that stay, and a limit that is left out has a warning."""
    snapshot = folder.parents[1] / "snapshot.jsonl"
    foreign = {"entity": {"client-id-prefix": "ap"}, "key": "producer_byte_rate", "value": 1}
    snapshot.write_text(f"{SNAPSHOT.rstrip()}\n{json.dumps(foreign)}\n", "utf-8")

    code, shown, warning = call(folder, "effects", "--all", "--format", "csv")

    rows = [line.split(",") for line in shown.splitlines()]
    assert code == 0
    assert [row[:6] + row[8:9] for row in rows if row[0] in {"user", "alice"}] == [
        ["user", "client-id", "owner", "key", "verdict", "before", "after"],
        ["alice", "app", "pay", "consumer_byte_rate", "same", "", ""],
        ["alice", "app", "pay", "controller_mutation_rate", "same", "", ""],
        ["alice", "app", "pay", "producer_byte_rate", "cut", "2097152.0", "1048576.0"],
        ["alice", "app", "pay", "request_percentage", "same", "", ""],
    ]
    assert {row[0] for row in rows[1:]} == {"alice", "bob"}
    assert warning.startswith("The table leaves out the limits of client-id-prefix=ap, because")


def test_a_name_that_is_a_formula(folder: Path) -> None:
    """CSV warns of cells that a spreadsheet would run; an inventory in Git may have any name."""
    (folder / "clients.csv").write_text(HOSTILE, "utf-8")

    code, shown, warning = call(folder, "effects", "--format", "csv")

    assert (code, shown.splitlines()[1].split(",")[:3]) == (0, ["alice", "=HYPERLINK(1)", "+pay"])
    assert warning == FORMULAS


def test_rows_for_programs(folder: Path) -> None:
    """JSON has the numbers and every row; no run is kept, but with --out, which shows it again."""
    code, shown, _ = call(folder, "effects", "--format", "json", "--detailed-exitcode")
    unkept = json.loads(shown)
    assert (code, unkept["run"], unkept["attempt"]) == (4, None, None)
    assert not (folder.parents[1] / "store").exists()

    found = json.loads(call(folder, "effects", "--format", "json", "--out", "kept")[1])
    assert found["clients"] == unkept["clients"]
    assert (found["total"]["cut"], found["owners"][0]["owner"]) == (1, "pay")
    assert found["clients"] == [
        {
            "user": "alice",
            "client-id": "app",
            "owner": "pay",
            "key": "producer_byte_rate",
            "verdict": "cut",
            "before": 2097152.0,
            "before_level": "user",
            "before_entity": "user=alice",
            "after": 1048576.0,
            "after_level": "user",
            "after_entity": "user=alice",
            "observed": 1048577.0,
            "used": 1048577.0,
            "head_room": -1.0,
            "throttled": True,
        }
    ]
    again = call(folder, "effects", "--run", found["run"], "--format", "json")
    assert json.loads(again[1]) == found


def test_another_inventory(folder: Path) -> None:
    """--inventory names other clients, for this question alone; without any the command ends."""
    other = folder.parents[1] / "other.csv"
    other.write_text("user,client-id\ncarol,x\n", "utf-8")

    shown = call(folder, "effects", "--inventory", str(other))[1]
    assert shown.endswith("\nNo limit of the 1 client in the inventory changes.\n")

    (folder / "cluster.yaml").write_text(CLUSTER, "utf-8")
    (folder / "clients.csv").unlink()
    code, _, error = call(folder, "effects")
    message = "cluster.yaml of demo has no inventory of clients\n"
    assert (code, message in error) == (2, True)


def test_a_plan_says_whom_it_concerns(folder: Path) -> None:
    """The screen, the comment and the reports have the sentence; a guard counts the clients."""
    (folder / "cluster.yaml").write_text(
        f"{CLUSTER}inventory: clients.csv\nguards: {{blast_radius: 0}}\n", "utf-8"
    )
    code, shown, _ = call(folder, "plan")
    run = next(one for one in shown.splitlines() if one.startswith("run: ")).removeprefix("run: ")

    assert (code, CUT in shown) == (1, True)
    guard = "blast_radius: 1 client would or may get less, more than 0\n"
    assert guard in shown
    assert CUT in call_cli(["show", run], {"HOME": str(folder)}, folder).stdout
    assert call(folder, "report", "--run", run)[0] == 0
    assert CUT.strip() in (Path(run) / "report.html").read_text("utf-8")


def test_a_lower_limit_for_one_client_id_alone_may_be_less(folder: Path) -> None:
    """A pair that takes each user's only client id from a higher shared limit counts as a loss."""
    users = [f"u{number}" for number in range(1, 10)]
    text = "{{user: {}, {}limits: {{producer_byte_rate: {} MiB}}}}"
    default = text.format("{default: true}", "", 10)
    pairs = text.format(f"[{', '.join(users)}]", "client-id: c, ", 1)
    (folder / "cluster.yaml").write_text(
        f"{CLUSTER}inventory: clients.csv\nguards: {{blast_radius: 8}}\n", "utf-8"
    )
    (folder / "team.yaml").write_text(f"owner: a\nquotas:\n  - {default}\n  - {pairs}\n", "utf-8")
    clients = "".join(f"{user},c\n" for user in users)
    (folder / "clients.csv").write_text(f"user,client-id\n{clients}", "utf-8")
    stored = {"entity": {"user": None}, "key": "producer_byte_rate", "value": 10 * 2**20}
    (folder.parents[1] / "snapshot.jsonl").write_text(f"{json.dumps(stored)}\n", "utf-8")

    code, shown, _ = call(folder, "plan")

    assert "Of 9 clients in the inventory: 9 may get less.\n" in shown
    assert "blast_radius: 9 clients would or may get less, more than 8\n" in shown
    assert code == 1


def test_a_wrong_inventory(folder: Path) -> None:
    """Check and plan name the file and the line, and the plan is not written."""
    (folder / "clients.csv").write_text("user,client-id\na,b\na,b,c\n", "utf-8")
    expected = (
        f"{folder}/clients.csv:3: the line has 3 cells, and the file has 2 columns.\n"
        "  Correct the inventory. Nothing was written.\n"
    )
    root = folder.parents[1]

    checked = call_cli(["check", "demo"], {"HOME": str(root)}, root)
    planned = call(folder, "plan")

    assert (checked.returncode, checked.stderr) == (2, expected)
    assert (planned[0], planned[2][-len(expected) :]) == (2, expected)
    assert not list((root / "store").rglob("plan.json"))


def test_an_inventory_without_clients(folder: Path) -> None:
    """A failed export is an error, not a plan that concerns nobody."""
    (folder / "clients.csv").write_text("user,client-id\n", "utf-8")
    root = folder.parents[1]

    checked = call_cli(["check", "demo"], {"HOME": str(root)}, root)
    effects = call(folder, "effects")

    expected = (
        "contains no clients\n"
        "  If the export failed, repeat it, or remove `inventory` from cluster.yaml."
    )
    assert (checked.returncode, expected in checked.stderr) == (2, True)
    assert (effects[0], expected in effects[2]) == (2, True)
