"""Reasons and names that a person gives, as they are recorded."""

import json

from quota_ops.model.unseen import UNSEEN, is_visible


def recorded(text: str) -> str:
    """Return the text as one line; what nobody sees, and what is no text, as its escape.

    Blanks and line ends of every kind become one space, and go at both ends. Empty where nothing
    of the text can be seen.
    """
    line = " ".join(text.encode(errors="backslashreplace").decode().split())
    if is_visible(line):
        return line
    if not any(one.isprintable() and one != " " for one in UNSEEN.sub("", line)):
        return ""
    return "".join(one if is_visible(one) else json.dumps(one)[1:-1] for one in line)
