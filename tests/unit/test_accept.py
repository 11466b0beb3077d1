"""Accepting drift into YAML files: exactly the named limits change."""

from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.desired.export.accept import NewLimit, accept_limits, accept_values, add_values
from quota_ops.desired.quotas_file import quota_rows, read_quotas_file
from quota_ops.desired.yaml.nodes import compose
from quota_ops.desired.yaml.source import Problems, Source
from quota_ops.model.quotas.rows import Key
from tests.yaml_cases import load_yaml

CASES = load_yaml(
    (Path(__file__).parents[1] / "cases" / "accept" / "files.yaml").read_text(encoding="utf-8")
)
RATES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


def source_of(text: str) -> Source:
    """Return a file with this text."""
    return Source("team.yaml", "team.yaml", text, Problems())


def limits_of(text: str) -> dict[Key, float]:
    """Return the limits that a file declares."""
    source = source_of(text)
    root = compose(source)
    assert root is not None
    found = {row.id: row.value for row in quota_rows(read_quotas_file(source, root).quotas, "")}
    assert not source.problems
    return found


def changed_lines(before: str, after: str) -> str:
    """Return the lines that differ."""
    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), n=0)
    return "".join(one for one in list(lines)[2:] if not one.startswith("@@"))


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_a_file_after_accept(case: dict[str, Any]) -> None:
    """Only the named limits change, or the reason why one cannot is returned."""
    values: dict[Key, float | None] = {
        Key(*name.split(" ")): float(value) for name, value in case.get("set", {}).items()
    }
    values |= {Key(*name.split(" ")): None for name in case.get("remove", ())}

    new = {Key(*name.split(" ")): float(value) for name, value in case.get("add", {}).items()}

    text, left_out = accept_values(source_of(case["file"]), values)
    text, unsafe = add_values(source_of(text), new, "INC-31")
    left_out |= unsafe

    if "left_out" in case:
        assert (text, set(left_out.values())) == (case["file"], {case["left_out"]})
    else:
        assert (changed_lines(case["file"], text), left_out) == (case["diff"], {})


COMMENTS = st.sampled_from(["", "  # why", "   # quotas: 'x'"])
LIMITS = st.dictionaries(st.sampled_from(RATES), st.sampled_from(["7", '"8"', "9"]), min_size=1)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Return a quotas file in one of the layouts that people use."""
    lines = ["owner: team" + draw(COMMENTS), "", "quotas:" + draw(COMMENTS)]
    for number in range(draw(st.integers(1, 4))):
        lines += draw(st.sampled_from([[], [""], ["  # quotas of a user"]]))
        limits = draw(LIMITS)
        if draw(st.booleans()):
            pairs = ", ".join(f"{key}: {value}" for key, value in limits.items())
            lines += [f"  - user: u{number}", f"    limits: {{{pairs}}}{draw(COMMENTS)}"]
        else:
            lines += [f"  - user: u{number}{draw(COMMENTS)}", "    limits:"]
            lines += [f"      {key}: {value}{draw(COMMENTS)}" for key, value in limits.items()]
        lines += draw(st.sampled_from([[], ["    reason: because"]]))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n# the end\n"]))


@given(files(), st.data())
def test_exactly_the_accepted_limits_differ(text: str, data: st.DataObject) -> None:
    """In any layout, accepted limits are declared as the cluster has them, and all else stays."""
    before = limits_of(text)
    chosen = data.draw(st.lists(st.sampled_from(sorted(before)), unique=True, min_size=1))
    values = {key: data.draw(st.sampled_from([None, 5.0])) for key in chosen}

    after, left_out = accept_values(source_of(text), values)

    wanted = {key: values.get(key, value) for key, value in before.items()}
    assert left_out == {}
    assert limits_of(after) == {key: one for key, one in wanted.items() if one is not None}
    kept = [one for one in text.split("\n") if "#" in one and not one.lstrip().startswith("-")]
    if None not in values.values():
        assert after.count("\n") == text.count("\n")
        assert [one.partition("#")[2] for one in after.split("\n")] == [
            one.partition("#")[2] for one in text.split("\n")
        ]
    else:
        own_lines = [one for one in kept if one.lstrip().startswith("#")]
        assert [one for one in after.split("\n") if one.lstrip().startswith("#")] == own_lines


def test_an_alter_during_an_override_is_not_accepted_below_it(tmp_path: Path) -> None:
    """The override would still apply, so Git would not declare what the alter set."""
    folder, place = tmp_path / "demo", "team.yaml:5"
    folder.mkdir()
    (folder / "cluster.yaml").write_text("cluster_id: demo\nconnection: demo\n")
    (folder / "team.yaml").write_text(
        "owner: etl\nquotas:\n  - user: alice\n    limits: {producer_byte_rate: 10}\n"
        "    overrides: [{until: 2126-12-01T00:00Z, limits: {producer_byte_rate: 20}}]\n"
    )
    key = Key("user=alice", "producer_byte_rate")

    found = accept_limits(folder, [NewLimit(key, 15.0, None, replaces_any=True)], dry_run=True)

    until = "override until 2126-12-01T00:00:00Z, then 10 B/s"
    why = f"{place} declares it indirectly: {until}"
    assert (found.accepted, found.left_out) == ((), ((key, why),))
