"""Charts of a number for each day, as SVG that pages embed: no script, and no style of their own.

Colours and letters come from page.css, so that a chart follows the page into the dark.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from markupsafe import Markup

_CHART, _SPARKLINE = (420, 150), (120, 24)
"""Widths and heights, in pixels."""
_FLOORS = (99, 90, 50)
"""Where the axis of a percentage may begin, so that a small decline is visible."""


class DailyNumber(NamedTuple):
    """A number for each day (`2026-11-23`), in order; a day without a number is left out."""

    name: str
    days: Sequence[tuple[str, float | None]]
    unit: str = ""
    """`%` for a percentage, otherwise empty."""

    @property
    def known(self) -> list[tuple[datetime, float]]:
        """The days that have a number; leather fails with dates that are a few days apart."""
        return [
            (datetime.fromisoformat(day), value) for day, value in self.days if value is not None
        ]

    @property
    def newest(self) -> tuple[str, str]:
        """The newest number as text, and its day."""
        day, number = self.known[-1]
        return self.format(number), f"{day:%Y-%m-%d}"

    @property
    def words(self) -> str:
        """The chart in words: its newest, lowest and highest number."""
        if not self.known:
            return f"{self.name}: no numbers"
        numbers = [number for _, number in self.known]
        least, most = self.format(min(numbers)), self.format(max(numbers))
        between = f"between {least} and {most} on {len(numbers)} days"
        return f"{self.name}: {' on '.join(self.newest)}, {between}"

    def format(self, number: float) -> str:
        """Return a number as text; a percentage is never rounded up to 100 %."""
        if not self.unit:
            return f"{number:,.0f}"
        return f"{int(number * 10) / 10:g} {self.unit}"


def draw_chart(numbers: DailyNumber, tone: str) -> Markup:
    """Return a line chart with axes; `tone` is a CSS class of page.css. Empty for one day."""
    known = numbers.known
    if len(known) < 2:  # noqa: PLR2004 - a line has two ends
        return _markup("")
    from leather import Chart  # 40 modules, for pages with days

    chart: Any = Chart()
    chart.add_line(known, stroke_color="currentColor", width=2)
    low, high = _find_bounds(numbers)
    chart.add_y_scale(low, high)
    chart.add_y_axis(
        ticks=[low, (low + high) / 2, high], tick_formatter=lambda tick, *_: numbers.format(tick)
    )
    first, last = known[0][0], known[-1][0]
    chart.add_x_axis(ticks=[first, last], tick_formatter=lambda day, *_: f"{day:%b} {day.day}")
    group = chart.to_svg_group(*_CHART)
    return _draw(group, numbers, f"chart {tone}", _CHART, margin=_CHART[0] // 25)


def draw_sparkline(numbers: DailyNumber, tone: str) -> Markup:
    """Return a line without axes, as for `draw_chart`."""
    known = numbers.known
    if len(known) < 2:  # noqa: PLR2004 - as above
        return _markup("")
    from leather import Line, Linear, Series, Temporal  # as above

    days = Temporal(known[0][0], known[-1][0])
    shape: Any = Line(stroke_color="currentColor", width=1.5)
    scales = days, Linear(*_find_bounds(numbers))
    line = shape.to_svg(_SPARKLINE[0] - 2, _SPARKLINE[1] - 4, *scales, Series(known), None)
    line.set("transform", "translate(1 2)")
    return _draw(line, numbers, f"sparkline {tone}", _SPARKLINE)


def _find_bounds(numbers: DailyNumber) -> tuple[float, float]:
    values = [value for _, value in numbers.known]
    if numbers.unit:
        return next((floor for floor in _FLOORS if floor <= min(values)), 0), 100
    return 0, max(2, *(value + value % 2 for value in values))


def _draw(
    group: Any, numbers: DailyNumber, style: str, size: tuple[int, int], margin: int = 0
) -> Markup:
    width, height = size
    names = {
        "viewBox": f"{margin} {margin // 2} {width - margin} {height - margin}",
        "class": style,
        "role": "img",
    }
    root = ET.Element("svg", names | {"aria-label": numbers.words})
    for element in group.iter():
        for name in ("fill", "stroke", "font-family", "font-size"):
            if element.get(name) not in {None, "none", "currentColor"}:
                del element.attrib[name]  # page.css sets it
    root.append(group)
    return _markup(ET.tostring(root, encoding="unicode"))


def _markup(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - ElementTree escapes names, and there is no other text
