"""What this repository offers to CI platforms, checked with their own schemas."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from quota_ops.cli import COMMANDS
from quota_ops.cli.commands.init import JOBS
from tests.calling import call_cli
from tests.platforms import schema
from tests.repositories import write_cluster
from tests.yaml_cases import load_yaml

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("action.yml", "github-actions"),
        ("docs/examples/pull-request.yml", "github-workflows"),
        (".github/workflows/test.yml", "github-workflows"),
        (".github/workflows/release.yml", "github-workflows"),
        ("templates/review.yml", "gitlab-ci"),
    ],
)
def test_files_for_platforms_match_their_schemas(path: str, name: str) -> None:
    """Each document of a file is valid by the platform's own schema."""
    text = (ROOT / path).read_text("utf-8").replace("\non:", '\n"on":')

    for document in yaml.safe_load_all(text):
        jsonschema.validate(document, schema(name))


@pytest.mark.parametrize(
    ("ci", "name"), [("github", "github-workflows"), ("gitlab", "gitlab-ci"), ("none", "")]
)
def test_init_writes_jobs_and_the_schemas(ci: str, name: str, tmp_path: Path) -> None:
    """The jobs are valid for their platform, and the YAML names schemas that it matches."""
    ended = call_cli(["init", "quotas", "--ci", ci], {"HOME": str(tmp_path)}, tmp_path)

    root = tmp_path / "quotas"
    assert ended.returncode == 0
    every = [path for paths in JOBS.values() for path in paths]
    assert [path for path in every if (root / path).exists()] == list(JOBS[ci])
    for path in JOBS[ci]:
        text = (root / path).read_text("utf-8")
        jsonschema.validate(load_yaml(text.replace("\non:", '\n"on":')), schema(name))
        assert "$$" not in text
        assert not {"$cluster", "$version", "$connection"} & set(re.findall(r"\$\w+", text))
        assert "git+https://github" not in text, "a private copy needs no token"
        document = yaml.safe_load(text)
        steps = [step for job in document.get("jobs", {}).values() for step in job["steps"]]
        inputs = [step["with"] for step in steps if "OWNER" in step.get("uses", "")]
        assert len(inputs) == text.count("uses: OWNER/")
        action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        assert {name for given in inputs for name in given} <= set(action["inputs"])
    for file in (root / "desired_state" / "main").iterdir():
        text = file.read_text("utf-8")
        named = text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
        jsonschema.validate(load_yaml(text), json.loads((file.parent / named).read_text()))


def test_the_hook_of_pre_commit_runs(tmp_path: Path) -> None:
    """The hook names a command of quota-ops, which passes in a repository of quotas."""
    (hook,) = load_yaml((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    write_cluster(tmp_path / "desired_state" / "demo")
    program, command = hook["entry"].split()

    ended = call_cli([command], {"HOME": str(tmp_path)}, tmp_path)

    assert (program, command in COMMANDS, ended.returncode) == ("quota-ops", True, 0)
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
