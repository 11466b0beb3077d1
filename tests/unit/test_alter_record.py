"""What is shown of an alter that did not write."""

from pathlib import Path

from quota_ops.model.runs.run import Alter
from quota_ops.stages.report.command_report import read_record
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import ALTER
from quota_ops.store.run.folder import RunFolder


def test_an_alter_that_no_broker_validated(tmp_path: Path) -> None:
    """Without the outcomes of a validation, the record does not claim that a broker accepts it."""
    folder = RunFolder.start(
        RunStore(open_place(tmp_path)).new_run("demo"), cluster="demo", commit=None
    )
    folder.write(ALTER, Alter("anna", "root", "INC-31"))

    record = read_record(folder)

    assert record
    assert (record.word, record.reason) == (
        "Not altered",
        "nothing was written on demo, by anna: no broker validated it",
    )
