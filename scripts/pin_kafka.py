"""Pins a Kafka version for the sandbox: every jar that it runs with, and the SHA-256 of each.

BINDING is the jar by which the slf4j of that version writes its log; the settings of the log are
then written by hand, beside the pins.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.jvm.pinned_jars import find_ivy

VERSIONS = Path(__file__).parents[1] / "quota_ops" / "lab" / "kafka" / "versions"
WITH_ALL_THAT_IT_NEEDS = 'conf="default->master,compile(*),runtime(*)"'
ALONE = 'transitive="false"'
COMMENT = """\
<!-- Apache Kafka {version}'s run-time jars, resolved once by
     scripts/pin_kafka.py {arguments}
     Each is named here by itself, so that nothing else can be drawn in. -->
"""
IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="quota-ops" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->default">
{lines}
  </dependencies>
</ivy-module>
"""
Jar = tuple[str, ...]
"""Organisation, name and version."""


def main() -> None:
    """Resolve, and write ivy.xml and sha256sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("binding", help="ORGANISATION:NAME:VERSION")
    parser.add_argument("without", nargs="?", help="a jar that was never published")
    asked = parser.parse_args()
    roots = [("org.apache.kafka", "kafka_2.13", asked.version), tuple(asked.binding.split(":"))]
    with tempfile.TemporaryDirectory() as scratch:
        digests = resolve(Path(scratch), roots, asked.without)
    folder = VERSIONS / asked.version
    folder.mkdir(exist_ok=True)
    comment = COMMENT.format(version=asked.version, arguments=" ".join(sys.argv[1:]))
    (folder / "ivy.xml").write_text(comment + ivy_file(sorted(digests), ALONE))
    lines = {f"{name}-{version}.jar": digest for (_, name, version), digest in digests.items()}
    sums = "".join(f"{lines[name]}  {name}\n" for name in sorted(lines))
    (folder / "sha256sums").write_text(sums)


def ivy_file(jars: Iterable[Jar], how: str, without: str | None = None) -> str:
    """The request to Ivy; `how` is an attribute of every jar."""
    lines = [
        f'    <dependency org="{organisation}" name="{name}" rev="{version}" {how}/>'
        for organisation, name, version in jars
    ]
    if without:
        lines.append(f'    <exclude module="{without}"/>')
    return IVY_FILE.format(lines="\n".join(lines))


def resolve(scratch: Path, roots: Iterable[Jar], without: str | None) -> dict[Jar, str]:
    """The SHA-256 of every jar that the roots need."""
    (scratch / "ivy.xml").write_text(ivy_file(roots, WITH_ALL_THAT_IT_NEEDS, without))
    command = [find_java(), *QUICK_START, "-jar", find_ivy(), "-warn", "-cache", "cache"]
    command += ["-ivy", "ivy.xml", "-types", "jar", "bundle"]  # a bundle is a jar by another name
    command += ["-retrieve", "jars/[organisation]/[artifact]/[revision].[ext]"]
    subprocess.run(command, cwd=scratch, check=True)
    return {
        (*jar.relative_to(scratch / "jars").parts[:-1], jar.stem): sha256(jar)
        for jar in scratch.glob("jars/*/*/*.jar")
    }


def sha256(file: Path) -> str:
    """A file's SHA-256."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    main()
