"""Text in Markdown: whatever it contains, it is shown as that text."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from quota_ops.report.markdown.parts import cell, code
from quota_ops.report.outline.formats import escape_text

GITHUB = MarkdownIt("gfm-like")


@given(st.text(max_size=200) | st.text("`|\\ a\n<@#*_[]!&:/.", max_size=50))
def test_a_code_span_holds_any_text(text: str) -> None:
    """Any text in a cell comes out of GitHub's Markdown as that text and nothing else."""
    document = f"|a|b|\n|-|-|\n|{cell(text)}|{code('b')}|\n"

    inlines = [token.children or [] for token in GITHUB.parse(document) if token.type == "inline"]

    expected = [[("code_inline", escape_text(text))]] if text else [[]]
    assert [[(token.type, token.content) for token in children] for children in inlines[2:]] == [
        *expected,
        [("code_inline", "b")],
    ]
