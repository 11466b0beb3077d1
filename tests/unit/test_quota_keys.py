"""A quota key is one row of one table: everything that depends on the key follows from it."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from quota_ops.model.quotas import quota
from quota_ops.model.quotas.quota import QUOTA_KEYS

PACKAGE = Path(__file__).parents[2] / "quota_ops"
EXAMPLES = {"lab/demo/by_hand.py", "lab/demo/month.py"}
"""What the demo tells as somebody's changes."""
SIXTH = """
        QuotaKey(
            name="disk_byte_rate",
            unit=BYTES,
            limits="stored bytes",
            types=_CLIENT,
            whole=True,
            largest=MAX_EXACT,
            unlimited=_LONG,
            measured=Measured("Disk", "byte_rate"),
            starving=STARVING_BYTES,
            small_guard="small_byte_rate",
        ),
"""
PROGRAM = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

name = "quota_ops.model.quotas.quota"
spec = spec_from_file_location(name, sys.argv.pop(1))
sys.modules[name] = module = module_from_spec(spec)
spec.loader.exec_module(module)

import json
from click.testing import CliRunner
from quota_ops.cli import main

print(json.dumps([CliRunner().invoke(main, call).stdout for call in json.loads(sys.argv[1])]))
"""
KEY, STORED, USED, LIMIT = "disk_byte_rate", 9e6, 8e6, 5 * 2**20


def test_no_other_module_or_query_lists_keys() -> None:
    """The name of a key is a value in the table alone."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name != "model/quotas/quota.py" and name not in EXAMPLES:
            values = (
                node.value
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant)
            )
            found |= {(name, value) for value in values if value in QUOTA_KEYS}
    for path in PACKAGE.rglob("*.sql"):
        words = set(re.findall(r"\w+", path.read_text()))
        found |= {(path.name, word) for word in words & QUOTA_KEYS.keys()}
    assert found == set()


def test_a_sixth_key_is_a_sixth_row(tmp_path: Path) -> None:
    """With one more row in the table, files, inventories, effects, schema and lookups know it."""
    table = tmp_path / "quota.py"
    source = Path(quota.__file__).read_text()
    before = '        QuotaKey(\n            name="consumer'
    assert before in source
    table.write_text(source.replace(before, f"{SIXTH.lstrip(chr(10))}{before}"))
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text("cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: x\n")
    (folder / "team.yaml").write_text(
        "owner: team\nquotas:\n  - {user: alice, limits: {disk_byte_rate: 5 MiB}}\n"
    )
    (tmp_path / "stored.jsonl").write_text(
        '{"entity": {"user": "alice"}, "key": "disk_byte_rate", "value": 9e6}\n'
    )
    (tmp_path / "clients.csv").write_text("user,client-id,disk_byte_rate\nalice,app,8e6\n")

    files = ["--actual", "stored.jsonl"]
    calls = (
        ["explain", "demo", "--format", "jsonl"],
        ["schema", "quotas"],
        ["resolve", *files, "--user", "alice", "--format", "json"],
        ["effects", "demo", *files, "--inventory", "clients.csv", "--format", "jsonl"],
    )
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(table), json.dumps(calls)],
        cwd=tmp_path,
        env=os.environ | {"QUOTA_OPS_RUN_STORE": str(tmp_path / "store")},
        stdout=subprocess.PIPE,
        check=True,
    )
    declared, schema, resolved, effect = json.loads(ended.stdout)

    assert (json.loads(declared)["key"], json.loads(declared)["value"]) == (KEY, LIMIT)
    assert f'"{KEY}"' in schema
    assert json.loads(resolved)[KEY]["value"] == STORED
    names = ("key", "before", "after", "observed", "throttled")
    assert [json.loads(effect)[name] for name in names] == [KEY, STORED, LIMIT, USED, True]
