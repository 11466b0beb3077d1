"""The site of the documentation, in a folder for each version.

`python -m tests.docs.site FOLDER` builds this version into a folder that may have others. A later
version then offers a choice between them: each page reads `versions.json` beside its own version.
"""

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.markdown import ROOT
from tests.docs.messages import add_messages

REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url={newest}/">\n'


def build_site(site: Path) -> str:
    """Build the pages into `site`/VERSION; return what the builder printed.

    Raises CalledProcessError for a link that leads nowhere.
    """
    with TemporaryDirectory() as folder:
        work, built = Path(folder), site / version("quota-ops")
        shutil.copytree(ROOT / "docs", work / "docs")
        add_messages(work / "docs")
        shutil.copy(ROOT / "zensical.toml", work)
        command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
        told = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True).stdout
        shutil.rmtree(built, ignore_errors=True)
        shutil.copytree(work / "site", built)
    versions = [page.parent.name for page in site.glob("*/index.html")]
    versions.sort(key=_read_number, reverse=True)
    listed = [{"version": name, "title": name, "aliases": []} for name in versions]
    listed[0]["aliases"] = ["latest"]
    (site / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (site / "index.html").write_text(REDIRECT.format(newest=versions[0]), encoding="utf-8")
    return told


def _read_number(name: str) -> list[int]:
    return [int(part) for part in name.split(".") if part.isdigit()]


if __name__ == "__main__":
    sys.stdout.write(build_site(Path(sys.argv[1])))
