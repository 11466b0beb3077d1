"""Charts of days."""

from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup

from quota_ops.report.page.chart import DailyNumber, draw_chart, draw_sparkline

SHARES = DailyNumber(
    "In sync",
    [("2026-11-01", 100.0), ("2026-11-02", None), ("2026-11-03", 97.96), ("2026-11-04", 99.99)],
    "%",
)
COUNTS = DailyNumber("Drifted", [("2026-11-01", 0), ("2026-11-02", 5), ("2026-11-03", None)])
ALLOWED = {
    *("class", "viewBox", "role", "aria-label", "transform", "d", "dy", "fill", "stroke"),
    *("x", "y", "x1", "x2", "y1", "y2", "width", "height", "stroke-width", "text-anchor"),
}


def parts_of(drawn: Markup) -> list[ET.Element]:
    """Return the elements of a chart."""
    return list(ET.fromstring(drawn).iter())  # noqa: S314 - the chart of a test


def test_a_chart_has_words_that_never_round_up() -> None:
    """A chart is named by its last known day and its bounds; 99.99 % is not 100 %."""
    assert SHARES.words == "In sync: 99.9 % on 2026-11-04, between 97.9 % and 100 % on 3 days"
    assert COUNTS.words == "Drifted: 5 on 2026-11-02, between 0 and 5 on 2 days"


def test_the_axis_of_a_chart() -> None:
    """A percentage begins where a decline is visible, a count begins at 0, and days are named."""
    texts = [
        [
            element.text
            for element in parts_of(draw_chart(numbers, "drifted"))
            if element.tag == "text"
        ]
        for numbers in (SHARES, COUNTS)
    ]

    assert texts == [["Nov 1", "Nov 4", "90 %", "95 %", "100 %"], ["Nov 1", "Nov 2", "3", "6", "0"]]


def test_a_chart_has_no_style_script_or_colour_of_its_own() -> None:
    """The policy of a page permits all of a chart, and page.css alone colours it."""
    for drawn in (draw_chart(SHARES, "in-sync"), draw_sparkline(COUNTS, "drifted")):
        parts = parts_of(drawn)
        assert {part.tag for part in parts} <= {"svg", "g", "rect", "line", "path", "text"}
        assert {name for part in parts for name in part.attrib} <= ALLOWED
        assert {part.get(name) for part in parts for name in ("fill", "stroke")} == {
            *(None, "none", "currentColor")
        }


@pytest.mark.parametrize("days", [[], [("2026-11-01", 3)], [("2026-11-01", None)] * 3])
def test_one_day_is_no_chart(days: list[tuple[str, float | None]]) -> None:
    """Less than two days with numbers draw nothing."""
    numbers = DailyNumber("Drifted", days)

    assert (draw_chart(numbers, "drifted"), draw_sparkline(numbers, "drifted")) == ("", "")
