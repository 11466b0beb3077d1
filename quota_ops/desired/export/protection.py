"""cluster.yaml with more entries of `protect`; what stands there stays as people wrote it."""

from collections.abc import Iterable

import yaml

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.export.quotas_text import protect_lines
from quota_ops.desired.export.writable import LeftOut
from quota_ops.desired.yaml.nodes import Room, compose
from quota_ops.desired.yaml.problems import Problems
from quota_ops.desired.yaml.source import Source


def new_cluster_file(cluster_id: str, connection: str) -> str:
    """The least that a cluster.yaml says."""
    return f"cluster_id: {cluster_id}\nconnection: {connection}\n"


def with_protected(text: str, left_out: Iterable[LeftOut]) -> str:
    """The text of a cluster.yaml that has no problems, with what is left out under `protect`."""
    lines = "".join(protect_lines(left_out))
    if not lines:
        return text
    node = _protect(text)
    if node is None:
        ended = text if text.endswith("\n") else f"{text}\n"
        head = "# Imported, and left alone: what YAML cannot ask for, or nobody can alter."
        entries = "protect:\n" if "\n  - " in f"\n{lines}" else ""
        return f"{ended}\n{head}\n{entries}{lines}"
    if node.flow_style:
        items = "".join(
            f"\n  - {text[item.start_mark.index : item.end_mark.index]}" for item in node.value
        )
        before, after = text[: node.start_mark.index].rstrip(" "), text[node.end_mark.index :]
        return f"{before}{items}\n{lines.rstrip()}{after}"
    return _after_last(text, node, lines)


def _after_last(text: str, node: yaml.SequenceNode, lines: str) -> str:
    """The text with lines below the last item of a block, indented as it is."""
    source = text.splitlines(keepends=True)
    item = node.value[-1]
    indent = " " * node.start_mark.column
    added = "".join(f"{indent}{line[2:]}" for line in lines.splitlines(keepends=True))
    at = _last_line(item) + 1
    above = "".join(source[:at])
    return f"{above}{'' if above.endswith(chr(10)) else chr(10)}{added}{''.join(source[at:])}"


def _last_line(node: yaml.Node) -> int:
    """The line on which a node ends; a block's own mark is where the next thing starts."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return _last_line(node.value[-1][1])
    return int(node.end_mark.line)


def _protect(text: str) -> yaml.SequenceNode | None:
    root = compose(Source(CLUSTER_YAML, CLUSTER_YAML, text, Problems()), Room())
    fields = root.value if isinstance(root, yaml.MappingNode) else ()
    return next((value for name, value in fields if name.value == "protect"), None)
