"""The comment of a review in a real browser: no text from a file does anything."""

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser

from quota_ops.report.review.comment import as_comment
from tests.browser.chromium import EXECUTABLE
from tests.unit.review_sample import CODE_HOST, review_of
from tests.unit.test_report_hostile import HARM

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")

OUTSIDE_CODE = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.parentElement.closest("code")) found.push(node.data);
  }
  return found.join("");
}"""


def test_a_hostile_comment_does_nothing(browser: Browser, heard: list[str]) -> None:
    """No script runs, nothing is loaded, and only lines are linked; no mention is outside code."""
    names = [name for kind, name in HARM.items() if kind != "surrogate"]
    markdown = MarkdownIt("gfm-like", {"html": True})  # GitHub removes more HTML than this
    page = browser.new_page()
    page.on("request", lambda request: heard.append(request.url))
    page.on("dialog", lambda dialog: heard.append(dialog.message))

    page.set_content("".join(markdown.render(as_comment(review_of(name))) for name in names))

    links = page.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    elements = page.locator("body *").evaluate_all("all => all.map(one => one.localName)")
    words = page.evaluate(OUTSIDE_CODE)
    page.close()
    assert heard == []
    assert [link for link in links if not link.startswith(f"{CODE_HOST}/")] == []
    assert {*elements} <= {
        *("p", "strong", "code", "a", "br", "h3", "ul", "li", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert [one for one in "@#<>" if one in words] == []
