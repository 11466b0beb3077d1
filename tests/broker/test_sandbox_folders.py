"""The sandbox's folders: anything in their place is named, and no broker is left behind."""

import os
from pathlib import Path

import pytest

from quota_ops.lab.kafka.node import read_node
from quota_ops.lab.kafka.sandbox import find_sandbox, start_sandbox
from quota_ops.model.errors import InvalidInput


@pytest.mark.parametrize("name", ["sandbox", "sandbox/node-1", "connections"])
def test_a_file_where_a_folder_should_be(sandbox_home: Path, name: str) -> None:
    """A file in the place of a folder is named and left alone, and no broker is started."""
    file = sandbox_home.parent / name
    file.parent.mkdir(exist_ok=True)
    file.touch()

    with pytest.raises(InvalidInput) as error:
        start_sandbox()

    assert error.value.message.startswith(f"the sandbox cannot use {file}")
    assert not find_sandbox().running
    file.unlink()


def test_a_connection_that_cannot_be_written_stops_the_broker(sandbox_home: Path) -> None:
    """If the connection file cannot be written, the broker that was started is stopped again."""
    connection = find_sandbox().connection
    draft = connection.with_name(f".{connection.name}.{os.getpid()}")
    draft.mkdir(parents=True)

    with pytest.raises(InvalidInput) as error:
        start_sandbox()

    assert error.value.message == f"the sandbox cannot use {draft}: Is a directory."
    assert read_node(sandbox_home / "node-1")
    assert not find_sandbox().running
