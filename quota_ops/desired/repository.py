"""The address of the repository in cluster.yaml, with which reports link to lines and commits."""

import yaml

from quota_ops.desired.yaml.scalars import Misread, read_text
from quota_ops.model.code_host import Repository

EXAMPLE = "https://github.com/acme/quotas"
_REMEDY = (
    f"Write the address of its first page, for example {EXAMPLE}. For Bitbucket Server, and a host "
    "whose name does not contain github, gitlab, gitea, forgejo, codeberg or bitbucket as a part "
    "between dots, write the address of a line, for example "
    "https://code.example/acme/quotas/src/commit/{commit}/{path}#L{line}."
)


def read_repository(field: str, node: yaml.Node) -> str:
    """Read the web address of a repository, or that of a line with placeholders."""
    text = read_text(field, node)
    try:
        Repository.parse(text)
    except ValueError as error:
        raise Misread(str(error), _REMEDY) from None
    return text
