"""Git repositories of a cluster's files, for tests."""

import subprocess
from pathlib import Path

from quota_ops.desired.git.commit import read_with_commit
from quota_ops.model.commit import Provenance

CLUSTER = "cluster_id: 4L6g3nShT-eMCtK--X86sw\nconnection: demo\n"
TEAM = "owner: {0}\nquotas:\n  - user: {0}\n    limits: {{producer_byte_rate: {1} MiB}}\n"


def git(root: Path, *arguments: str) -> str:
    """Return the output of Git."""
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    call = ["git", "-C", str(root), *who, "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def head(root: Path) -> str:
    """Return the commit that is checked out."""
    return git(root, "rev-parse", "HEAD")


def commit_all(root: Path) -> str:
    """Commit everything in the folder."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Quotas")
    return head(root)


def write_cluster(folder: Path) -> None:
    """Create a cluster of two teams, one of them in a folder of its own, and Markdown."""
    (folder / "teams").mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "teams" / "payments.yml").write_text(TEAM.format("payments", 1))
    (folder / "search.yaml").write_text(TEAM.format("search", 1))
    (folder / "notes.md").write_text("Notes")


def uncommitted(root: Path, *names: str) -> Provenance:
    """Return the expected commit of files that differ from the commit that is checked out."""
    return Provenance(uncommitted=names, base=head(root))


def found(folder: Path) -> Provenance:
    """Return the commit of a folder's files as they are read."""
    return read_with_commit(folder)[1]
