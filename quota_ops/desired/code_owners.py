"""CODEOWNERS of the repository, compared with the `code_owners` of cluster.yaml."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.yaml.checkout import open_folder
from quota_ops.desired.yaml.source import not_opened
from quota_ops.model.finding import Problem
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.owners import Owner

PLACES = (".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where GitHub and GitLab look for the file; each host ignores the folder of the other."""
_MOST_BYTES = 3 * 2**20
"""GitHub ignores a larger file."""
_SECTION = re.compile(r"\^?\[([^]]+)\](?:\[\d+\])?(.*)")


class Rule(NamedTuple):
    """A line of CODEOWNERS: its number, its section of GitLab, its pattern and the approvers."""

    line: int
    section: str
    pattern: str
    names: tuple[str, ...]


def read_rules(text: str) -> Iterator[Rule]:
    """Yield the rules of a file; those of a section without names have the names of its heading."""
    section, usual = "", tuple[str, ...]()
    for number, whole in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|(?<=\s))#.*", "", whole).strip()
        if heading := _SECTION.fullmatch(line):
            section, usual = heading[1].lower(), tuple(heading[2].split())
        elif line:
            pattern, *names = re.split(r"(?<!\\)\s+", line)
            yield Rule(number, section, pattern.replace("\\ ", " "), tuple(names) or usual)


def find_names(rules: Sequence[Rule], path: str) -> tuple[frozenset[str], int]:
    """Return who has to approve a change of a path, and the line that decides (0: none).

    In each section the last rule that matches decides.
    """
    last = {rule.section: rule for rule in rules if _compile(rule.pattern).fullmatch(path)}
    names = frozenset(name for rule in last.values() for name in rule.names)
    return names, max((rule.line for rule in last.values()), default=0)


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern as .gitignore has it, without `!` and `[ ]`."""
    anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    marks = {
        "/**/": "/(?:.*/)?",
        "**/": "(?:.*/)?",
        "/**": "/.*",
        "**": ".*",
        "*": "[^/]*",
        "?": "[^/]",
    }
    parts = re.split(r"(/\*\*/|\*\*/|/\*\*|\*\*|\*|\?)", body)
    text = "".join(marks.get(part) or re.escape(part) for part in parts)
    below = "/.*" if pattern.endswith("/") else "" if pattern.endswith("/*") else "(?:/.*)?"
    return re.compile(f"{'' if anchored else '(?:.*/)?'}{text}{below}", re.DOTALL)


def write_rules(path: str, owners: Sequence[Owner]) -> str:
    """Return the lines of CODEOWNERS for a cluster's folder, below the root of the repository."""
    return "".join(
        f"/{path}/{file} {' '.join(owner.code_owners)}\n"
        for owner in owners
        for file in (owner.files if owner.code_owners else ())
    )


def find_disagreements(folder: Path, path: str | None, policy: Policy) -> list[Problem]:
    """Return a problem for each file that CODEOWNERS gives to others than cluster.yaml does.

    `path` is the path of the cluster's folder below the root of its repository; None outside any.
    The file of a problem is below that root, too. Nothing is compared unless an owner has
    `code_owners`.
    """
    owners = [owner for owner in policy.owners if owner.code_owners and owner.files]
    if not owners or path is None:
        return []
    root = folder.resolve().parents[len(Path(path).parts) - 1] if path else folder.resolve()
    place = next((name for name in PLACES if (root / name).exists()), None)
    if place is None:
        words = "cluster.yaml has code_owners, and the repository has no CODEOWNERS."
        remedy = f"Create it with: {write_rules(path, owners).strip()}"
        return [Problem(PLACES[0], 1, 1, words, remedy)]
    try:
        with open_folder((root / place).parent, own=1) as opened:
            text = opened.read(Path(place).name, _MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return [not_opened(error, place, "file")]
    return list(_compare(list(read_rules(text)), place, path, owners))


def _compare(
    rules: Sequence[Rule], place: str, path: str, owners: Sequence[Owner]
) -> Iterator[Problem]:
    prefix = f"{path}/" if path else ""
    teams = {name for owner in owners for name in owner.code_owners}
    for owner in owners:
        for file in owner.files:
            target = f"{prefix}{file}"
            names, line = find_names(rules, f"{target}any.yaml" if file.endswith("/") else target)
            if names != frozenset(owner.code_owners):
                now, wanted = " ".join(sorted(names)) or "nobody", " ".join(owner.code_owners)
                yield Problem(
                    place,
                    line or 1,
                    1,
                    f"{now} approves changes of {target}; cluster.yaml lists {wanted} for "
                    f"{owner.name}.",
                    f"Write, below the other lines: /{target} {wanted}",
                )
    names, line = find_names(rules, f"{prefix}{CLUSTER_YAML}")
    if not names or names & teams:
        who = " ".join(sorted(names)) or "nobody"
        yield Problem(
            place,
            line or 1,
            1,
            f"{who} approves changes of {prefix}{CLUSTER_YAML}, which declares the owners.",
            f"Give it code owners that own no file of quotas: /{prefix}{CLUSTER_YAML} @PLATFORM",
        )
