"""The files that a new contributor needs agree with each other and work."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.yaml_cases import load_yaml

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINNED = re.compile(r"[\w-]+/[\w-]+@v\d+(\.\d+\.\d+)?")
FORMS = sorted((ROOT / ".github").rglob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def workflow(name: str) -> dict[str, Any]:
    """Read the jobs of a workflow."""
    found = load_yaml((ROOT / ".github/workflows" / name).read_text("utf-8"))
    jobs: dict[str, Any] = found["jobs"]
    return jobs


def steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    return [step for job in workflow(name).values() for step in job.get("steps", ())]


def test_the_same_versions_of_python_are_named_everywhere() -> None:
    """The classifiers, the workflow, set-up and the pages agree on what is supported."""
    versions = workflow("test.yml")["test"]["strategy"]["matrix"]["python"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    page = (ROOT / "docs/reference/compatibility.md").read_text("utf-8")

    assert classified == versions
    assert " | ".join(versions) in (ROOT / "scripts/required_tools.sh").read_text("utf-8")
    assert f"| Python | {', '.join(versions)} |" in page
    assert PROJECT["requires-python"] == ">=3.11,<3.14"


@pytest.mark.parametrize("name", ["test.yml", "release.yml"])
def test_a_workflow_calls_what_is_there(name: str) -> None:
    """A workflow calls existing targets of the Makefile, and actions with a pinned version."""
    commands = " ".join(step.get("run", "") for step in steps(name))
    called = set(re.findall(r"make (\w+)", commands))
    actions = {step["uses"] for step in steps(name) if "uses" in step}

    assert called
    assert called <= TARGETS
    assert [action for action in actions if not PINNED.fullmatch(action)] == []


def test_only_the_publishing_job_may_identify_itself() -> None:
    """Only the job `publish`, which runs no code of the repository, gets the publishing token."""
    jobs = workflow("release.yml")
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", ())] == [
        "publish"
    ]
    assert [step for step in jobs["publish"]["steps"] if "uses" not in step] == []
    assert jobs["publish"]["environment"] == "release"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms_and_workflows_are_yaml(path: Path) -> None:
    """Every form and workflow is valid YAML, and an issue form has fields."""
    found = load_yaml(path.read_text("utf-8"))
    assert found
    if path.parent.name == "ISSUE_TEMPLATE" and path.stem != "config":
        assert {"name", "description", "body"} <= set(found)
        assert all(field["type"] in {"markdown", "textarea"} for field in found["body"])


def test_the_changelog_has_the_version() -> None:
    """The newest section of the changelog is of the version that would be released."""
    first = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[0]
    assert first == PROJECT["version"]
