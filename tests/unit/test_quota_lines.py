"""Plainly written files are read line by line, exactly as from their nodes."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.desired.quota_lines import read_quota_lines
from quota_ops.desired.quotas_file import QuotasFile, read_quotas_file
from quota_ops.desired.yaml.nodes import MAX_VALUES, SizeBudget, compose
from quota_ops.desired.yaml.source import Problems, Source

PLAIN = """\
# limits of payments
owner: payments, all of it

quotas:
  - user: alice  # since May
    reason: card settlement (a batch's load)
    limits: {producer_byte_rate: 10 MiB, request_percentage: 12.5}
  - client-id: app-1
    # at most
    limits:
      consumer_byte_rate: 2097152
      controller_mutation_rate: unlimited

    user: {default: true}
  - ip: 10.0.0.7
    limits: { connection_creation_rate: 5 }
"""
PIECES = st.sampled_from(
    (
        *"\n\t\r\u00e9\u2028#:,-&*!%@'\"{}[]|>~0. ",
        *("  ", "- ", ": ", " #", "yes", "1e3", "...", "---", "0x1f", "<default>", "10.0.0.01"),
        *(
            "user",
            "ip",
            "limits",
            "owner",
            "groups: []\n",
            "    ",
            "profile: gold\n",
            "? ",
            "[a, b]",
        ),
        *(
            "unlimited",
            " per cluster",
            "producer_byte_rate",
            "limits: {}",
            "{default: true}",
            "1_0",
        ),
        *("\n  ", "\n    ", "\n      ", "\n  - ", "silence", "99999999999999999999", "0", "null"),
    )
)
EDITS = st.lists(st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 12), PIECES), max_size=4)


def read(text: str) -> tuple[QuotasFile | None, QuotasFile | None, int, int]:
    """Return a file as read by line and from its nodes, with the values that each counted.

    None for a file with a problem.
    """
    rooms = SizeBudget(), SizeBudget()
    source = Source("a.yaml", "a.yaml", text, Problems())
    lines = None
    if not (source.refuse_invisible() or source.refuse_conflicts()):  # as `read_source` refuses
        lines = read_quota_lines(source, rooms[0])
    root = None if source.problems else compose(source, rooms[1])
    nodes = None if root is None else read_quotas_file(source, root)
    by_line, by_node = (MAX_VALUES - room.values for room in rooms)
    return lines, None if source.problems else nodes, by_line, by_node


def test_a_plain_file_is_read_by_line() -> None:
    """A plain file is read by line, with the same quotas, places and number of values."""
    lines, nodes, *counted = read(PLAIN)

    assert lines is not None
    assert lines == nodes
    assert len(lines.quotas) == 3
    assert counted[0] == counted[1]


@given(EDITS)
@example([(PLAIN.index("\n  - user"), len(PLAIN), "")])  # quotas is empty
def test_a_line_is_read_as_its_nodes_are(edits: list[tuple[int, int, str]]) -> None:
    """After any edit, a file that is read by line has no problem, and the same content."""
    text = PLAIN
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]

    lines, nodes, *counted = read(text)

    if lines is not None:
        assert lines == nodes
        assert counted[0] == counted[1]


@pytest.mark.parametrize("path", sorted(Path("desired_state").rglob("*.yaml")), ids=str)
def test_shipped_files_are_read_alike(path: Path) -> None:
    """Each file of this repository that is read by line has the content of its nodes."""
    lines, nodes, *_ = read(path.read_text("utf-8"))

    assert lines in (None, nodes)
