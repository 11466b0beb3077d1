"""House rules that no linter knows, and the directions that import-linter holds."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 250
MODULES = sorted(
    path
    for folder in ("quota_ops", "spark_jobs", "dags", "scripts", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
BANNED = re.compile(r"(^|_)(manager|helpers?|utils?|common|base|core|handler|service)(_|$)")


def test_imports_run_one_way() -> None:
    """Every contract of import-linter is kept."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, "0 broken" in ran.stdout) == (0, True), ran.stdout


def test_the_model_stands_on_the_standard_library() -> None:
    """What a quota is needs no other package, wherever in a module it would be imported."""
    nodes = [
        node
        for path in (ROOT / "quota_ops" / "model").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    modules = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    modules += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]

    packages = {module.partition(".")[0] for module in modules}
    assert packages - sys.stdlib_module_names == {"quota_ops"}


def test_modules_are_short() -> None:
    """No module is longer than a person reads in one go."""
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in MODULES}

    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}


def test_names_say_what_is_in_a_module() -> None:
    """No module is named by a word that could name any module."""
    assert [path.name for path in MODULES if BANNED.search(path.stem)] == []


def test_lock_files_hold_no_addresses() -> None:
    """Whoever installs decides where from: the locks name packages and hashes only."""
    locks = sorted(ROOT.glob("*.lock")) + sorted(ROOT.glob("quota_ops/sandbox/versions/*/*"))

    assert [lock.name for lock in locks if "://" in lock.read_text()] == []
