"""The contents of a release."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.repositories import commit_all, git

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def build(root: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run what `make dist` runs."""
    return subprocess.run(
        [sys.executable, "scripts/build_dist.py", folder],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_is_whole_and_works_without_java(tmp_path: Path) -> None:
    """`make dist` builds an archive and a wheel, and the wheel plans in an empty environment.

    A copy in another folder, with other times and file modes, gives the same bytes.
    """
    done = build(ROOT, tmp_path / "dist")

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


def test_version_changelog_and_tag_agree(tmp_path: Path) -> None:
    """`make dist` builds nothing if the tag of the commit or the changelog has another version."""
    root = tmp_path / "clone"
    (root / "scripts").mkdir(parents=True)
    for name in ("pyproject.toml", "CHANGELOG.md", "scripts/build_dist.py"):
        (root / name).write_bytes((ROOT / name).read_bytes())
    git(root, "init", "--quiet")
    commit_all(root)

    git(root, "tag", f"v{VERSION}")
    early = build(root, tmp_path / "dist").stderr
    git(root, "tag", "v9.9.9")
    tagged = build(root, tmp_path / "dist").stderr
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    (root / "CHANGELOG.md").write_text(changelog.replace(f"## {VERSION} ", "## 9.9.9 "))
    changed = build(root, tmp_path / "dist").stderr

    assert (early, tagged, changed) == (
        f"build_dist: this commit has the tag v{VERSION}, but CHANGELOG.md calls it not released\n",
        f"build_dist: this commit has the tag v9.9.9, but its version is {VERSION}\n",
        f"build_dist: CHANGELOG.md begins with 9.9.9 (not released yet): write one for {VERSION}\n",
    )
    assert not (tmp_path / "dist").exists()


def test_every_page_names_this_version() -> None:
    """The versions of quota-ops on pages, in examples and templates are the one of the package."""
    shown = r"quota_ops-(\d+\.\d+\.\d+)|quota-ops[@/\w.-]*@v(\d+\.\d+\.\d+)|rev: v(\d+\.\d+\.\d+)"
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.yml")]
    found = {
        version
        for page in pages
        for match in re.findall(shown, page.read_text("utf-8"))
        for version in filter(None, match)
    }

    assert found == {VERSION}
