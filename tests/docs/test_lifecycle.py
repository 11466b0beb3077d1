"""The promises of the page on the life of a quota, besides its commands."""

from quota_ops.model.runs.stages import STAGES
from tests.docs.markdown import ROOT, Page

LIFECYCLE = Page(ROOT / "docs" / "explanation" / "lifecycle.md")


def test_every_stage_has_its_section() -> None:
    """The eight stages, in order, each with the command that runs it."""
    parts = [part.split("\n", maxsplit=1) for part in LIFECYCLE.text.split("\n## ")[1:]]
    assert [name for name, _ in parts[:8]] == list(STAGES)
    assert [name for name, text in parts[:8] if f"$ quota-ops {name} " not in text] == []


def test_one_quota_is_followed() -> None:
    """The digest that is approved is the one that was planned."""
    (planned,) = {
        line.partition("plan ")[2][:8]
        for line in LIFECYCLE.text.split("## apply")[0].splitlines()
        if line.startswith("demo (")
    }
    assert f"$ quota-ops apply --run $run --approve {planned}" in LIFECYCLE.text
