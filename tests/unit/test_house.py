"""House rules that no linter knows, and the directions that import-linter holds."""

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
