"""Characters that nobody sees: a name that holds one reads as another name and is none."""

import re

UNSEEN = re.compile(
    "[\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode shows as nothing (Default_Ignorable_Code_Point, interlinear marks) or as a blank."""


def is_visible(text: str) -> bool:
    """Whether each character of a text is seen, or is a plain space."""
    return text.isprintable() and (text.isascii() or UNSEEN.search(text) is None)
