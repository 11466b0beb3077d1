"""The documentation besides commands: files, links, YAML and connections."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from quota_ops.desired.read import read_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import SETTINGS
from quota_ops.report.records.metrics import format_metrics
from quota_ops.usage.connection import PrometheusConnection
from tests.docs.markdown import PAGES, ROOT, Block, Page
from tests.docs.transcript import UPDATE
from tests.platforms import schema
from tests.yaml_cases import load_yaml

CLUSTER_FILE = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
SHARED_FILE = "profiles: {%s: {producer_byte_rate: 50 MiB}}\n"
LANGUAGES = {"", "console", "json", "properties", "python", "sh", "text", "yaml"}
EVERY = [Page(path) for path in PAGES]
PLACES = ("", "quota_ops/", "docs/")
FILE = re.compile(r"[a-z_.][a-z_0-9.*/-]*(?:/|\.(?:json|lock|md|py|sh|sql|toml|yaml|yml|css|js))")


def blocks(*languages: str, titled: bool = False) -> list[Any]:
    """Return the blocks of these languages as parameters of a test."""
    return [
        pytest.param(page, block, id=f"{page.name}:{block.first}")
        for page in EVERY
        for block in page.blocks()
        if block.language in languages and titled == (block.title is not None)
    ]


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_tested(page: Page) -> None:
    """Each block has a language that a test checks."""
    assert {block.language for block in page.blocks()} <= LANGUAGES


@pytest.mark.parametrize(("page", "block"), blocks(*LANGUAGES, titled=True))
def test_a_file_is_shown_as_it_is(page: Page, block: Block) -> None:
    """A block with a title is that file, or a part of it, word for word."""
    text = (ROOT / str(block.title)).read_text(encoding="utf-8")
    if UPDATE and not (block.text and block.text in text):
        now = next(one for one in page.blocks() if one[:3] == block[:3])
        page.replace_blocks({now: excerpt(text, block.text)})
    assert UPDATE or (block.text and block.text in text)


def excerpt(text: str, stale: str) -> str:
    """Return the current text of a file where a stale excerpt began; all of it for an empty one."""
    lines = text.splitlines(keepends=True)
    old = stale.splitlines(keepends=True)
    first = lines.index(old[0]) if old else 0
    return "".join(lines[first : first + len(old)] if old else lines)


@pytest.mark.parametrize(("page", "block"), blocks("json"))
def test_json_can_be_read(page: Page, block: Block) -> None:
    """A block of JSON can be copied as it is."""
    assert isinstance(json.loads(block.text), dict), page.name


def check_platform(document: Any) -> None:
    """Validate steps of GitHub, or a file of GitLab or pre-commit (which has no schema)."""
    if isinstance(document, list):
        job = {"runs-on": "ubuntu-latest", "steps": document}
        jsonschema.validate({"on": "push", "jobs": {"job": job}}, schema("github-workflows"))
    elif "include" in document:
        jsonschema.validate(document, schema("gitlab-ci"))
    else:
        (repository,) = document["repos"]
        hooks = load_yaml((ROOT / ".pre-commit-hooks.yaml").read_text())
        assert [one["id"] for one in repository["hooks"]] == [hook["id"] for hook in hooks]


@pytest.mark.parametrize(("page", "block"), blocks("yaml"))
def test_yaml_passes_check(page: Page, block: Block, tmp_path: Path) -> None:
    """YAML that readers may copy is valid: a cluster.yaml, quotas, or a job of a CI platform."""
    del page
    names = {"cluster_id": "cluster.yaml", "owner": "team.yaml"}
    found = [file for field, file in names.items() if field in load_yaml(block.text)]
    if not found:
        check_platform(load_yaml(block.text))
        return
    folder = tmp_path / "demo"
    folder.mkdir()
    (tmp_path / "_shared").mkdir()
    for name in ("gold", "silver"):
        (tmp_path / "_shared" / f"{name}.yaml").write_text(SHARED_FILE % name)
    (folder / "cluster.yaml").write_text(CLUSTER_FILE)
    (folder / found[0]).write_text(block.text)
    assert read_cluster(folder).policy.cluster == "demo"


@pytest.mark.parametrize(("page", "block"), blocks("properties"))
def test_connections_parse(
    page: Page, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection file that readers may copy has only known settings."""
    del page
    for name in ("ca.pem", "client.pem", "client.key"):
        (tmp_path / name).touch()
    (tmp_path / "client-secret").write_text("secret")
    for name in re.findall(r"\$\{env:(\w+)\}", block.text):
        monkeypatch.setenv(name, "-----BEGIN A TEXT THAT STANDS ELSEWHERE-----\n")
    text = re.sub(r"/etc/(kafka|quota-ops)/", "", block.text)
    if text.startswith("url="):
        (tmp_path / "prometheus-token").write_text("secret")
        found = PrometheusConnection.parse(text, name="docs", source="a page", folder=tmp_path)
        assert found.headers["Authorization"] == "Bearer secret"
        return
    assert Connection.parse(text, name="docs", source="a page", folder=tmp_path).principal


def test_every_setting_is_told() -> None:
    """The page on connections lists every setting."""
    text = (ROOT / "docs/reference/connections.md").read_text()
    assert [name for name in SETTINGS if name not in text] == []


def test_the_workflow_uses_inputs_of_the_action() -> None:
    """The example of a workflow passes inputs that the action has."""
    jobs = load_yaml((ROOT / "docs/examples/pull-request.yml").read_text())["jobs"]
    inputs = load_yaml((ROOT / "action.yml").read_text())["inputs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "quota-ops@" in step["uses"]]
    assert len(steps) == 2
    assert {name for step in steps for name in step["with"]} <= set(inputs)


def test_alerts_use_metrics_that_exist() -> None:
    """Each metric in the example of alerts is on the page, and one that `metrics` writes."""
    groups = load_yaml((ROOT / "docs/examples/prometheus_alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    page = (ROOT / "docs/how-to/metrics.md").read_text()
    written = {one.name for one in parse(format_metrics([]))}
    used = {name for rule in rules for name in re.findall(r"quota_ops_\w+", rule["expr"])}
    assert all(rule["alert"] and rule["annotations"]["summary"] for rule in rules)
    assert len(used) == 7
    assert used < written == set(re.findall(r"^\| `(quota_ops_\w+)[`{]", page, re.MULTILINE))


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    """A link within the repository leads to a file, and to a heading of it."""
    lost = []
    for link in page.links():
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = page.path.parent / target if target else page.path
        if not path.exists() or (anchor and anchor not in Page(path).anchors()):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.name)
def test_files_are_where_they_are_said_to_be(page: Page) -> None:
    """A path of this repository in a text exists."""
    named = [code for code in page.code() if "/" in code and FILE.fullmatch(code)]
    lost = [name for name in named if not any(any(ROOT.glob(place + name)) for place in PLACES)]
    assert lost == []


def test_every_page_can_be_found() -> None:
    """Every page is reachable from the README by links."""
    found, new = set[Path](), {ROOT / "README.md"}
    while new:
        found |= new
        links = {
            path.parent / link.partition("#")[0] for path in new for link in Page(path).links()
        }
        inside = {(one / "README.md" if one.is_dir() else one).resolve() for one in links}
        new = {path for path in inside if path in PAGES} - found
    adrs = set((ROOT / "docs/adr").glob("*.md"))
    assert set(PAGES) - found - adrs == set()
