"""An inventory in a bucket: a file, a folder, and a line that is wrong."""

import pytest

from quota_ops.sql.embedded_effects import read_inventory
from quota_ops.sql.inventory import NotClients, find_inventory
from quota_ops.store.places.run_store import open_place


@pytest.mark.each_bucket
def test_an_inventory_in_a_bucket(address: str) -> None:
    """DuckDB reads a copy of each object; an error names the object and the line."""
    folder = open_place(f"{address}/clients")
    (folder / "one.csv").replace(b"user,client-id,owner\na,b,x\n")
    (folder / "two.csv").replace(b"user,client-id,owner\nc,d,\n")
    (folder / "_SUCCESS").replace(b"")

    for place, names in ((folder, ["a", "c"]), (folder / "two.csv", ["c"])):
        found = read_inventory(find_inventory(place))
        assert sorted(found["user"].to_pylist()) == names

    (folder / "two.csv").replace(b"user,client-id,owner\nc,d\n")
    with pytest.raises(NotClients) as error:
        read_inventory(find_inventory(folder))
    expected = f"{address}/clients/two.csv:2: the line has 2 cells, and the file has 3 columns."
    assert error.value.message == expected
