"""The contents of a release."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_is_whole_and_works_without_java(tmp_path: Path) -> None:
    """`make dist` builds an archive and a wheel, and the wheel plans in an empty environment."""
    done = subprocess.run(
        [sys.executable, "scripts/build_dist.py", tmp_path / "dist"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    said = re.sub(r"\b[0-9a-f]{64}\b", "SHA-256", done.stdout)
    said = re.sub(r"plan [0-9a-f]{8}\b", "plan HASH", said)
    heading = "demo (MkU3OEVBNTcwNTJENDM2Qg) at unknown commit      plan HASH      "
    heading += "2 to change of 2, 0 in sync, 1 unmanaged"
    assert said.splitlines() == [
        f"SHA-256  {tmp_path}/dist/quota_ops-0.1.0-py3-none-any.whl",
        f"SHA-256  {tmp_path}/dist/quota_ops-0.1.0.tar.gz",
        f"quota-ops 0.1.0, installed without Java: {heading}",
    ]
