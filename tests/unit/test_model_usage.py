"""Metrics in cluster.yaml."""

import pytest

from quota_ops.model.usage import Metric


def test_a_metric_is_a_name_with_labels() -> None:
    """A metric in cluster.yaml selects series; it is never another expression."""
    assert Metric.parse(' used{resource="Produce",a = "x\\"y" } ') == Metric(
        "used", (("resource", "Produce"), ("a", 'x"y'))
    )


@pytest.mark.parametrize(
    "text",
    ["rate(used[5m])", 'used{a=~"x"}', "used or secret", 'used{a="x"', "1a", 'used{a="x"}#'],
)
def test_another_expression_is_refused(text: str) -> None:
    """Anything but a name with labels is refused."""
    with pytest.raises(ValueError, match=r"is not the name|has a matcher"):
        Metric.parse(text)
