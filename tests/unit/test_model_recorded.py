"""Reasons and names as they are recorded."""

import pytest

from quota_ops.model.text import clean_text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("INC-31", "INC-31"),
        ("  a backlog,\r\n\tsee  INC-31 ", "a backlog, see INC-31"),
        ("agreed\u00a0with\u3000payments", "agreed with payments"),
        ("Überlauf 漢字", "Überlauf 漢字"),
        ("caf\udce9", "caf\\udce9"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("a\u202ebc", "a\\u202ebc"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("", ""),
        (" \n\t", ""),
        ("\u200b\u3164 \x1b", ""),
    ],
)
def test_what_is_recorded(given: str, kept: str) -> None:
    """One line with every character visible; empty for an empty text."""
    assert clean_text(given) == kept
    assert clean_text(kept) == kept
