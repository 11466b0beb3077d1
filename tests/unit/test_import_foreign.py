"""Quotas in the files of other tools."""

from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.foreign import read_foreign_files
from quota_ops.model.errors import InvalidInput
from quota_ops.model.tool import Tool
from tests.yaml_cases import load_yaml

CASES = load_yaml((Path(__file__).parents[1] / "cases/import/foreign.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_file_of_another_tool(case: dict[str, Any], tmp_path: Path) -> None:
    """Every quota of a file is found; whatever is not known exactly is an error with its line."""
    file = tmp_path / "file"
    file.write_text(case["text"])
    try:
        found = read_foreign_files([(Tool(case["tool"]), file)])
    except InvalidInput as error:
        message = error.message.replace(str(file), "FILE")
        assert message.startswith(f"FILE{case['error']}")
        return
    assert [[quota.entity.text, quota.key, quota.value] for quota in found] == case["rows"]
