"""Text from a user that is not UTF-8, not visible or blank: rejected, or recorded escaped."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quota_ops.cli import COMMANDS, main
from quota_ops.model.errors import InvalidInput

NAME = "caf\udce9"
SHOWN = "caf\\udce9"
REMEDY = "  Names in Kafka are UTF-8: use a terminal or a file with that encoding.\n"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("hold demo --until 2h --reason x --names user=N", "--names 'user=N'"),
        ("release demo --names user=N", "--names 'user=N'"),
        ("adopt demo --reason x --names user=N", "--names 'user=N'"),
        ("describe demo --names user=N", "--names 'user=N'"),
        ("resolve demo --names user=N", "--names 'user=N'"),
        ("resolve demo --user N", "--user 'N'"),
        ("resolve demo --client-id N", "--client-id 'N'"),
        ("alter demo --names N=a --add a=1", "--names 'N=a'"),
        ("alter demo --defaults N --add a=1", "--defaults 'N'"),
        ("alter demo --names user=a --add N=1", "--add 'N=1'"),
        ("alter demo --names user=a --delete N", "--delete 'N'"),
    ],
)
def test_a_name_is_refused(
    command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error shows the option with its bytes and a remedy; no cluster is queried."""
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text("cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n")
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(main, command.replace("N", NAME).split())

    told = option.replace("N", SHOWN)
    assert (ended.exit_code, ended.stderr) == (2, f"{told} is not UTF-8\n{REMEDY}")


CONTEXT = click.Context(main)


def recorded_options() -> Iterator[tuple[str, click.Parameter]]:
    """Return each option whose text is recorded, with the name of its command."""
    for name in COMMANDS:
        command = main.get_command(CONTEXT, name)
        for option in command.params if command else ():
            if option.name in {"reason", "by"}:
                yield name, option


@pytest.mark.parametrize("blank", ["", "  ", "\n", "\u200b\u3164"])
def test_a_blank_is_refused(blank: str) -> None:
    """Every command rejects a reason and a name without visible characters."""
    for _, option in recorded_options():
        with pytest.raises(
            InvalidInput, match=f"^{option.opts[0]} is blank; it is recorded, so it needs a text"
        ):
            option.process_value(CONTEXT, blank)


def test_a_placeholder_is_refused() -> None:
    """A printed command pasted unchanged gives no reason: TEXT is not one."""
    for _, option in recorded_options():
        with pytest.raises(InvalidInput, match=f"^{option.opts[0]} TEXT is the placeholder"):
            option.process_value(CONTEXT, "TEXT")


def test_whatever_is_kept_is_text() -> None:
    """Every command that records who and why stores undecodable bytes as escapes."""
    kept: dict[str, set[tuple[str, str]]] = {}
    for name, option in recorded_options():
        told = option.process_value(CONTEXT, NAME)
        kept.setdefault(told, set()).add((name, str(option.name)))

    reasons = ("plan", "validate", "apply", "report", "reconcile")
    both = (*reasons, "alter", "hold", "adopt", "release", "rollback")
    assert kept == {SHOWN: {*((name, "reason") for name in both), *((name, "by") for name in both)}}
