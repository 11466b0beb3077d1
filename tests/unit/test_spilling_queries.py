"""A query larger than the memory leaves nothing in the working directory."""

from pathlib import Path

import duckdb
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


def test_one_started_duckdb_serves_databases_that_share_nothing() -> None:
    """A table of one database is in no other, at the same time or later."""
    first, other = embedded.open_database(), embedded.open_database()
    with first as db, other as beside:
        for number, each in enumerate((db, beside)):
            each.execute(f"CREATE TABLE numbers AS SELECT {number} AS number")
        assert [each.sql("FROM numbers").fetchall() for each in (db, beside)] == [[(0,)], [(1,)]]
    with pytest.raises(duckdb.CatalogException), embedded.open_database() as db:
        db.execute("FROM numbers")
