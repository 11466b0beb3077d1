"""Files that count up, `00000001.json`, each made once and never written again.

Who wants the next number creates it, which fails when another was first; then the one after it.
"""

import re
from pathlib import Path

from quota_ops.model.errors import InvalidInput

_NAME = re.compile(r"([0-9]{8})\.[a-z]+")


def file_name(number: int, kind: str) -> str:
    """The name of a number's file of a kind, such as `json`."""
    return f"{number:08d}.{kind}"


def is_file_name(name: str, kind: str) -> bool:
    """Whether this is the name of some number's file of a kind."""
    return bool(_NAME.fullmatch(name)) and name.endswith(f".{kind}")


def numbers(folder: Path, kind: str) -> list[int]:
    """The numbers whose files are there, in order; none where there is no folder.

    A copy that somebody laid beside them under another name does not count. Raises InvalidInput
    where something else is in the folder's place, or nobody may list it: that is not nothing.
    """
    try:
        names = [one.name for one in folder.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be listed: {error.strerror}") from error
    found = (_NAME.fullmatch(name) for name in names if name.endswith(f".{kind}"))
    return sorted(int(name[1]) for name in found if name)
