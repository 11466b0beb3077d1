"""The sandbox's connection file is written for its own broker and never over a person's."""

from pathlib import Path

import pytest

from quota_ops.lab.kafka.sandbox import find_connection_file, remove_connection, write_connection
from quota_ops.model.errors import InvalidInput

OWN = "bootstrap.servers=kafka-1:9094\n"


def test_it_is_written_again_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection file names the broker, follows it to a new port, and is removed with it."""
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path / "connections"))
    file = find_connection_file()
    write_connection(file, "127.0.0.1:1")
    write_connection(file, "127.0.0.1:2")
    assert file == tmp_path / "connections" / "demo.properties"
    assert file.read_text() == (
        "# Written by quota-ops sandbox start; quota-ops sandbox stop removes it.\n"
        "bootstrap.servers=127.0.0.1:2\n"
        "security.protocol=PLAINTEXT\n"
    )
    remove_connection(file)
    remove_connection(file)
    assert list(file.parent.iterdir()) == []


def test_a_persons_own_file_is_left_alone(tmp_path: Path) -> None:
    """A file without the sandbox's first line is neither replaced nor removed.

    The error names it.
    """
    file = tmp_path / "demo.properties"
    file.write_text(OWN)
    with pytest.raises(InvalidInput) as error:
        write_connection(file, "127.0.0.1:1")
    remove_connection(file)
    assert str(error.value) == (
        f"{file} is your own connection; the sandbox does not replace it.\n"
        "  Rename it, or set QUOTA_OPS_CONNECTIONS to another folder."
    )
    assert file.read_text() == OWN
