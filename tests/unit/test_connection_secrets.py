"""A value in the place of a name, which may be a secret, stays hidden."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from tests.repositories import write_cluster
from tests.unit.test_connection import SECRET, told


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (f"sasl.password=x\n{SECRET}==\n", "2: this name is not a setting of a connection."),
        (f"sasl.password:{SECRET}==\n", "1: this name is an unknown security setting"),
        (f"ssl.keystore.type=PEM\n{SECRET}==\n", "2: this name is not a setting for describing"),
        (f"ssl.keystore.type=PEM\n{SECRET}=\n{SECRET}=\n", "3: this name is already set at"),
        (
            f"sasl.password=${{env:{SECRET}}}",
            "1: sasl.password refers to a variable which is not set.",
        ),
        (
            f"sasl.password=${{file:x/{SECRET}=}}",
            "1: sasl.password refers to a file which does not",
        ),
        (
            f"sasl.password=${{file:{SECRET * 99}}}",
            "1: sasl.password refers to a file which cannot",
        ),
        (
            f"sasl.password=${{env:{SECRET}",
            "1: sasl.password contains ${...}; the known forms are ${env:NAME}",
        ),
    ],
)
def test_a_secret_in_the_place_of_a_name_is_not_shown(lines: str, error: str) -> None:
    """A value that was cut in two, or written where a name is expected, stays hidden."""
    said = told(lines, Path())["error"]
    assert said.startswith(f"demo.properties:{error}")
    assert SECRET not in said


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_stores_no_part_of_a_connection(form: str, tmp_path: Path) -> None:
    """No screen and no file of the run store contains a secret written in the place of a name."""
    write_cluster(tmp_path / "desired_state" / "demo")
    file, store = tmp_path / "demo.properties", tmp_path / "store"
    options = ["--connection", str(file), "--run-store", str(store), "--format", form]
    for line in (f"{SECRET}==", f"client.id=${{env:{SECRET}}}", f"client.id=${{env:{SECRET}"):
        file.write_text(f"bootstrap.servers=localhost:1\n{line}\n")
        ended = CliRunner().invoke(
            main, ["reconcile", "demo", "--desired-state", f"{tmp_path}/desired_state", *options]
        )
        assert (ended.exit_code, SECRET in ended.output) == (2, False)
        assert f"{file}:2" in ended.output
    stored = [path for path in store.rglob("*") if path.is_file()]
    assert "stage-describe.json" in {path.name for path in stored}
    assert [path for path in stored if SECRET.encode() in path.read_bytes()] == []
