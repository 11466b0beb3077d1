"""A commit cannot make check read outside its checkout: no link is followed."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.desired.yaml.checkout import Entry, Folder
from quota_ops.report.screens.plan import STOPPED
from tests.unit.hostile_links import ABOVE, IN_PLACE, LINKS, QUOTAS, write_cluster

SECRET = "correct-horse-battery-staple"


@pytest.fixture(name="machine", autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a checkout with one cluster, with a folder of secrets beside it."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("cluster.yaml", "password.yaml"):
        (secrets / name).write_text(SECRET)
    checkout = tmp_path / "checkout"
    write_cluster(checkout / "desired_state" / "demo")
    (checkout / ".git").mkdir()
    monkeypatch.chdir(checkout)
    # A sandbox of this user, with a connection of the same name, may be running.
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path / "connections"))
    return tmp_path


def check(*arguments: str) -> Result:
    """Return the output of check with these arguments."""
    return CliRunner().invoke(main, ["check", *arguments])


@pytest.mark.parametrize("arguments", [(), ("demo",), ("--format", "json"), ("demo", "--strict")])
@pytest.mark.parametrize("make", LINKS)
def test_a_link_is_named_and_nothing_behind_it_is_read(
    make: Callable[[Path], str], arguments: tuple[str, ...], machine: Path
) -> None:
    """For a link anywhere in the checkout, check exits with 2 and shows no excerpt."""
    said = make(machine)

    ended = check(*arguments)

    assert ended.exit_code == 2, ended.output
    assert SECRET not in ended.output
    assert " | " not in ended.output
    path, message = said.split(":1:1  ")
    found = '"file": "' + path if "json" in arguments and path in ended.stdout else said
    assert found in ended.output
    assert message[:30] in ended.output


@pytest.mark.parametrize("make", LINKS)
@pytest.mark.parametrize("command", ["ping", "describe", "plan", "hold"])
def test_no_command_reads_what_a_link_leads_to(
    command: str, make: Callable[[Path], str], machine: Path
) -> None:
    """Every command that names a cluster rejects the same links in cluster.yaml and above."""
    make(machine)

    ended = CliRunner().invoke(
        main, [command, "demo"], env={"QUOTA_OPS_RUN_STORE": str(machine / "store")}
    )

    assert ended.exit_code in {2, 3}
    assert SECRET not in ended.output


def test_what_becomes_a_link_while_it_is_read_is_refused(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file or folder that is replaced after it was listed is not followed either."""
    team = Path("desired_state/demo/team")
    team.mkdir()
    (team / "password.yaml").write_text(QUOTAS.replace("alice", "bob"))
    listed = Folder.entries

    def exchange(folder: Folder, name: str = "") -> list[Entry]:
        found = listed(folder, name)
        if name == "team":
            team.rename("aside")
            team.symlink_to(machine / "secrets")
            Path("desired_state/demo/team.yaml").unlink()
            Path("desired_state/demo/team.yaml").symlink_to(machine / "secrets/password.yaml")
        return found

    monkeypatch.setattr(Folder, "entries", exchange)

    ended = check("demo")

    assert ended.output == (
        f"desired_state/demo/team:1:1  {IN_PLACE}\n"
        f"desired_state/demo/team.yaml:1:1  {IN_PLACE}\n"
        "2 problems in 2 of 4 files (0 quotas read)\n"
    )


def test_pipes_sockets_and_devices_are_refused_at_once() -> None:
    """No read blocks on a pipe, and a socket is not a file."""
    folder = Path("desired_state/demo")
    os.mkfifo(folder / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.yaml"))
        (folder / "cluster.yaml").unlink()
        os.mkfifo(folder / "cluster.yaml")

        ended = check("demo")

    problem = "This is not a regular file. Remove it."
    assert ended.output == (
        f"{folder}/cluster.yaml:1:1  {problem}\n{folder}/pipe.yaml:1:1  {problem}\n"
        f"{folder}/socket.yaml:1:1  {problem}\n3 problems in 3 of 4 files (1 quota read)\n"
        f"{STOPPED}\n"
    )


def test_links_above_the_checkout_are_followed(machine: Path) -> None:
    """No commit can create a link above the top of its checkout."""
    (machine / "work").symlink_to(machine)

    ended = check("--desired-state", str(machine / "work/checkout/desired_state"))

    assert ended.output == "demo: 1 quota in 2 files, no problems\n"


@pytest.mark.parametrize("at_top", [True, False])
def test_the_link_of_git_sync_is_followed(machine: Path, *, at_top: bool) -> None:
    """git-sync's root is a repository too, in which a link leads to the newest linked worktree."""
    root = machine / "git"
    write_cluster(root / "demo" if at_top else root / "desired_state/demo")
    git = ("git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "Quotas"),
        ("worktree", "add", "-q", "--detach", ".worktrees/abc"),
    ):
        subprocess.run([*git, *command], check=True)
    (root / "current").symlink_to(".worktrees/abc")
    (root / "other").symlink_to(machine / "checkout")
    below = "" if at_top else "/desired_state"

    followed = check("--desired-state", f"{root}/current{below}")
    refused = check("--desired-state", f"{root}/other/desired_state")

    assert followed.output == "demo: 1 quota in 2 files, no problems\n"
    assert refused.output.startswith(f"{root}/other:1:1  {ABOVE}")


def test_without_git_no_link_is_followed_from_the_desired_state_down(machine: Path) -> None:
    """An archive does not show where a commit's own paths begin: a folder above may be a link."""
    Path(".git").rmdir()
    (machine / "work").symlink_to(machine / "checkout")
    (machine / "state").symlink_to(machine / "checkout/desired_state")

    followed = check("--desired-state", str(machine / "work/desired_state"))
    refused = check("--desired-state", str(machine / "state"))

    assert followed.output == "demo: 1 quota in 2 files, no problems\n"
    assert refused.output.startswith(f"{machine}/state:1:1  {ABOVE}")


def test_without_git_the_current_folder_is_the_top(machine: Path) -> None:
    """In an image, no link below its working directory is followed, except to a checkout."""
    Path("teams").symlink_to(machine / "checkout")
    followed = check("--desired-state", "teams/desired_state")
    assert followed.output.startswith(f"teams:1:1  {ABOVE}")

    os.chdir(machine)
    Path("work").symlink_to("checkout")
    assert check("--desired-state", "work/desired_state").exit_code == 0
    Path("checkout/.git").rmdir()
    refused = check("--desired-state", "work/desired_state")
    assert (refused.exit_code, refused.output.startswith(f"work:1:1  {ABOVE}")) == (2, True)


def test_a_folder_that_may_be_passed_but_not_listed_is_no_obstacle(machine: Path) -> None:
    """The folders above a checkout need not be readable."""
    (machine / "checkout").chmod(0o711)
    is_root = os.geteuid() == 0
    machine.chmod(0o711)
    if is_root:
        for path in (machine, *machine.parents[:-2]):
            path.chmod(0o711)
        os.seteuid(65_534)
    try:
        ended = check("--desired-state", str(machine / "checkout/desired_state"))
    finally:
        if is_root:
            os.seteuid(0)

    assert ended.output == "demo: 1 quota in 2 files, no problems\n"


def test_the_folder_that_a_link_leads_to_may_be_named(machine: Path) -> None:
    """A user's own link works after its target is named instead."""
    current = machine / "checkout/current"
    current.symlink_to("desired_state")

    refused = check("--desired-state", "current")
    named = check("--desired-state", os.path.realpath(current))

    assert refused.output.startswith(f"current:1:1  {ABOVE} of its target.\n")
    assert named.output == "demo: 1 quota in 2 files, no problems\n"


@pytest.mark.parametrize("place", ["desired_state/main", "desired_state", "dags", "README.md"])
def test_init_writes_through_no_link(machine: Path, place: str) -> None:
    """A repository from somebody else cannot redirect what init writes."""
    target = machine / "target"
    if place == "desired_state":
        Path("desired_state").rename("elsewhere")
    Path(place).symlink_to(target)
    if place != "README.md":
        target.mkdir()

    ended = CliRunner().invoke(main, ["init", "."])

    assert ended.exit_code == 2
    why = "README.md already exists" if place == "README.md" else f"{place}:1:1  {ABOVE}"
    assert why in ended.output
    assert not target.exists() or list(target.iterdir()) == []


@pytest.mark.parametrize("place", ["new", "desired_state/demo/users.yaml"])
def test_import_writes_through_no_link(machine: Path, place: str) -> None:
    """Neither a folder nor a file that import writes may be a link."""
    Path("desired_state/demo/team.yaml").unlink()
    target = machine / "target"
    if place == "new":
        target.mkdir()
    Path(place).symlink_to(target)
    snapshot = machine / "snapshot.jsonl"
    snapshot.write_text('{"entity": {"user": "a"}, "values": {"request_percentage": 50}}\n')

    into = ("--into", "new/demo") if place == "new" else ()
    ended = CliRunner().invoke(main, ["import", "demo", "--actual", str(snapshot), *into])

    assert ended.exit_code == 2
    why = f"new:1:1  {ABOVE}" if place == "new" else "already has desired state: users.yaml"
    assert why in ended.output
    assert not target.exists() or list(target.iterdir()) == []
