"""What the README, the docs and the changelog promise in absolute words is held by a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.yaml_cases import load_yaml

ABSOLUTE = re.compile(
    r"\b(no|only|every|ever|never|always|however|whatever|whenever"
    r"|nothing (?:more )?is (?:sent|written|cleared|fetched)|cannot (?:choose|make any|loosen|use)"
    r"|(?:writes|sends|overrides|creates|approves) nothing)\b",
    re.IGNORECASE,
)
"""Words and phrases that promise something absolute."""
PROMISES = load_yaml((ROOT / "tests" / "cases" / "docs" / "promises.yaml").read_text("utf-8"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"),
]


def list_promises(page: Path) -> Iterator[str]:
    """Yield each sentence of a page with an absolute word outside of code, with single spaces."""
    text = page.read_text("utf-8")
    for left_out in (r"```.*?```", r"<!-- generated.*?<!-- end -->", r"<details>.*?</details>"):
        text = re.sub(left_out, "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )", text):
        words = re.sub(r"^\s*(?:[-*|]|\d+\.) ", "", " ".join(paragraph.split()))
        for sentence in re.split(r"(?<=[.!?:]) (?=[A-Z`*\[])", words):
            if ABSOLUTE.search(re.sub(r"`[^`]*`", "", sentence)):
                yield sentence


def test_every_absolute_promise_has_a_test() -> None:
    """Name the test that fails when a new feature breaks the sentence, or weaken the sentence."""
    found = {page.relative_to(ROOT).as_posix(): list(list_promises(page)) for page in PAGES}
    unheld = [
        f"{page}: {sentence}"
        for page, sentences in found.items()
        for sentence in sentences
        if not sentence.startswith(tuple(PROMISES.get(page, {"\0": ""})))
    ]
    missing = [
        f"{page}: {start}"
        for page, starts in PROMISES.items()
        for start in starts
        if not any(sentence.startswith(start) for sentence in found[page])
    ]

    assert (unheld, missing) == ([], [])


def test_the_tests_of_promises_exist() -> None:
    """Each test that the table names is there; what is no promise says whose fact it is."""
    named = {test for starts in PROMISES.values() for test in starts.values()} - {"no promise"}
    files = {test.partition("::")[0] for test in named}
    there = {
        f"{file}::{node.name}"
        for file in files
        for node in ast.walk(ast.parse((ROOT / "tests" / file).read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }

    assert named - there == set()
