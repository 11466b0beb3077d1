"""A query larger than the memory leaves nothing in the working directory."""

from pathlib import Path

import pytest

from quota_ops.sql import embedded

_LARGE = "CREATE TABLE large AS SELECT i, hash(i) AS h FROM range(4000000) t(i) ORDER BY h"
_SETTINGS: dict[str, str | int] = {"memory_limit": "40MB", "threads": 1}


def test_a_query_that_spills_uses_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit into the memory goes to a temporary folder, never to the user's folder."""
    monkeypatch.chdir(tmp_path)
    with embedded.open_database(**_SETTINGS) as db:
        db.execute(_LARGE)
        ((folder,),) = db.execute("SELECT current_setting('temp_directory')").fetchall()
        assert list(Path(folder).iterdir()) != []
        assert list(tmp_path.iterdir()) == []
    assert not Path(folder).exists()
