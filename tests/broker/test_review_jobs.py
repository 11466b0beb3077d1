"""The ready-made jobs for pull requests and merges, run as a runner would, on a real broker."""

import json
import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from quota_ops.cli.commands.init import JOBS
from quota_ops.report.review.comment import MARKER
from tests.broker.test_review import MIB, RATE, begin, change
from tests.calling import call_cli
from tests.comments_api import TOKEN, serve_comments
from tests.lab import Lab
from tests.preloaded import preloaded
from tests.repositories import git, head
from tests.yaml_cases import load_yaml

ROOT = Path(__file__).parents[2]
ACTION = load_yaml((ROOT / "action.yml").read_text("utf-8"))


def environment_of(lab: Lab, **more: str) -> dict[str, str]:
    """Return the environment of a step: quota-ops is on the path, as the step before left it."""
    path = f"{preloaded().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return lab.environment | {"PATH": path} | more


def run_step(step: dict[str, Any], inputs: dict[str, str], lab: Lab, **more: str) -> str:
    """Run a `run:` step as GitHub's runner does, with bash -eo pipefail; return its output."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    expressions = {f"${{{{ inputs.{name} }}}}": value for name, value in given.items()}
    environment = {name: expressions[value] for name, value in step["env"].items()}
    script = lab.root / "step.sh"
    script.write_text(step["run"], "utf-8")
    ended = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],  # noqa: S607 - as a runner
        env=environment_of(lab, **more) | environment,
        cwd=lab.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return f"{ended.stdout}[exit code {ended.returncode}]"


def test_the_action_reviews_a_pull_request(lab: Lab) -> None:
    """The step writes outputs, a summary, annotations and one comment, which it later updates.

    It does not update one that somebody else begins with the same marker.
    """
    lab.put({"user=alice": {RATE: 10 * MIB}})
    begin(lab, alice=10)
    change(lab, alice=2)
    checkout = lab.folder.parent
    event = {"pull_request": {"number": 7, "base": {}, "head": {"sha": head(checkout)}}}
    files = {name: lab.root / name for name in ("event", "output", "summary")}
    files["event"].write_text(json.dumps(event))
    step = next(one for one in ACTION["runs"]["steps"] if one.get("id") == "review")
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_PATH": str(files["event"]),
        "GITHUB_OUTPUT": str(files["output"]),
        "GITHUB_STEP_SUMMARY": str(files["summary"]),
        "RUNNER_TEMP": str(lab.root),
    }
    inputs = {"desired-state": str(checkout), "token": TOKEN, "base": "main"}

    forged = f"{MARKER}\n**quota-ops · ✅ no quota changes**"
    with serve_comments(forged) as api:
        variables["GITHUB_API_URL"] = api.address
        first = run_step(step, inputs, lab, **variables)
        outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
        comments = dict(api.comments)
        change(lab, alice=8)
        second = run_step(step, inputs | {"fail-on-guards": "false"}, lab, **variables)

    assert api.methods == ["GET", "POST", "GET", "PATCH"]
    assert comments == {0: forged, 1: Path(outputs["comment"]).read_text("utf-8")}
    assert ({*api.comments}, api.comments[0]) == ({0, 1}, forged)
    assert comments[1].startswith(f"{MARKER}\n**quota-ops · ⚠️ 1 change on `demo`; 1 guard needs ")
    assert api.comments[1].startswith(f"{MARKER}\n**quota-ops · ✅ 1 change on `demo`** · ")
    assert outputs["exit-code"] == "1"
    link = f"https://github.com/o/r/blob/{event['pull_request']['head']['sha']}/demo/team.yaml#L4"  # type: ignore[index]
    assert f"[`team.yaml:4`]({link})" in comments[1]
    assert files["summary"].read_text("utf-8").startswith(comments[1])
    assert first.splitlines()[-2].startswith(
        "::warning file=demo/team.yaml,line=4,title=quota-ops%3A cut::user=alice "
        f"{RATE}, 10 MiB/s to 2 MiB/s: guard cut needs approval. "
    )
    assert (first[-13:], second[-13:]) == ("[exit code 1]", "[exit code 0]")
    results = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert [(result["ruleId"], result["level"]) for result in results] == [("cut", "warning")]


def run_script(script: str, lab: Lab, *shell: str, **variables: str) -> str:
    """Run a script as a runner does; return its output and exit code."""
    ended = subprocess.run(
        [*shell, script],
        env=environment_of(lab, QUOTA_OPS_DESIRED_STATE=str(lab.folder.parent), **variables),
        cwd=lab.root,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{ended.stdout}{ended.stderr}[exit code {ended.returncode}]"


def read_variables(file: Path) -> dict[str, str]:
    """Return the outputs of a step, or the variables of a dotenv report."""
    return dict(line.split("=", 1) for line in file.read_text("utf-8").splitlines())


def read_jobs(lab: Lab, ci: str) -> Any:
    """Return the jobs after a merge that init writes for the cluster demo."""
    ended = call_cli(["init", ci, "--ci", ci, "--cluster", "demo"], lab.environment, lab.root)
    assert ended.returncode == 0
    job = list(JOBS[ci])[-1]
    jobs = load_yaml((lab.root / ci / job).read_text("utf-8"))
    return jobs["jobs"] if ci == "github" else jobs


def test_the_jobs_after_a_merge_write_the_plan_that_was_approved(lab: Lab) -> None:
    """A plan that needs approval waits for its environment; a repair of drift does not."""
    lab.put({"user=alice": {RATE: 10 * MIB}})
    begin(lab, alice=10, bob=9)
    lab.call("reconcile", "demo", "--allow", "takeover", "--reason", "begin")
    lab.put({"user=bob": {RATE: 8 * MIB}})
    change(lab, alice=2, bob=9)
    jobs, bash = (
        read_jobs(lab, "github"),
        ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"),
    )
    output = lab.root / "output"
    plan, write = (jobs[name]["steps"][-1] for name in ("plan", "reconcile"))

    planned = run_script(plan["run"], lab, *bash, GITHUB_OUTPUT=str(output))
    assert output.exists(), planned
    outputs = read_variables(output)
    approved = {"RUN": outputs["run"], "DIGEST": outputs["digest"], "JOB": "https://host/run/7"}
    other = run_script(write["run"], lab, *bash, **approved | {"DIGEST": "0" * 64})
    before = lab.stored()
    written = run_script(write["run"], lab, *bash, **approved)

    assert outputs["environment"] == "quotas-approval"
    assert "cut: user=alice producer_byte_rate would fall by more than 50 %" in planned
    assert planned.endswith("[exit code 0]")
    repaired = {"user=bob": {RATE: 9.0 * MIB}}
    assert (other[-13:], before) == ("[exit code 1]", {"user=alice": {RATE: 10.0 * MIB}} | repaired)
    assert written.endswith("[exit code 0]"), written
    assert lab.stored() == {"user=alice": {RATE: 2.0 * MIB}} | repaired

    jobs, shell = read_jobs(lab, "gitlab"), ("sh", "-ec")
    change(lab, alice=3, bob=9)
    again = run_script("\n".join(jobs["plan"]["script"]), lab, *shell)
    variables = read_variables(lab.root / "plan.env") | {"CI_PIPELINE_URL": "https://host/8"}
    ended = run_script("\n".join(jobs["reconcile"]["script"]), lab, *shell, **variables)
    idle = run_script("\n".join(jobs["approve"]["script"]), lab, *shell, **variables)

    assert idle == ("This plan needs no approval; the job reconcile writes it.\n[exit code 0]")
    assert (variables["approval"], again[-13:], ended[-13:]) == ("none", *["[exit code 0]"] * 2)
    assert lab.stored() == {"user=alice": {RATE: 3.0 * MIB}} | repaired
    approvals = lab.records.approvals
    recorded = [approvals.below(file.path).read().decode() for file in approvals.walk()]
    assert sorted(len([text for text in recorded if job in text]) for job in ("/run/7", "/8")) == [
        1,
        1,
    ]

    change(lab, alice=4, bob=9)
    policy = lab.folder / "cluster.yaml"
    policy.write_text(policy.read_text("utf-8") + "\napproval: always\n", "utf-8")
    git(lab.folder.parent, "commit", "--quiet", "--all", "--message", "Approve all")
    waiting = [
        run_script(plan["run"], lab, *bash, GITHUB_OUTPUT=str(output)),
        run_script("\n".join(jobs["plan"]["script"]), lab, *shell),
    ]
    assert [text[-13:] for text in waiting] == ["[exit code 0]"] * 2, waiting
    assert read_variables(output)["environment"] == "quotas-approval"
    assert read_variables(lab.root / "plan.env")["approval"] == "needed"

    (lab.folder / "cluster.yaml").write_text("connection: demo\n")
    git(lab.folder.parent, "commit", "--quiet", "--all", "--message", "Lose the id")
    failed = run_script(plan["run"], lab, *bash, GITHUB_OUTPUT=str(output))
    assert failed.endswith("[exit code 2]")
    assert "Traceback" not in failed


def test_a_plan_that_nobody_can_approve_is_not_applied(lab: Lab) -> None:
    """Without required reviewers GitHub runs the job approve; it fails, and no job writes."""
    bash = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    jobs = read_jobs(lab, "github")
    [look] = jobs["approve"]["steps"]
    assert jobs["approve"]["if"] == "needs.plan.outputs.environment == 'quotas-approval'"
    assert jobs["reconcile"]["if"] == (
        "${{ !cancelled() && needs.plan.result == 'success' && (needs.approve.result == 'success' "
        "|| needs.plan.outputs.environment == 'quotas') }}"
    )
    environment = lab.root / "api/repos/o/r/environments/quotas-approval"
    environment.parent.mkdir(parents=True)
    serve = partial(SimpleHTTPRequestHandler, directory=lab.root / "api")
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        api = f"http://127.0.0.1:{server.server_port}"
        variables = {"TOKEN": "t", "GITHUB_API_URL": api, "GITHUB_REPOSITORY": "o/r"}
        missing = run_script(look["run"], lab, *bash, **variables)
        environment.write_text('{"protection_rules": [{"type": "branch_policy"}]}')
        open_to_all = run_script(look["run"], lab, *bash, **variables)
        environment.write_text('{"protection_rules": [{"type": "required_reviewers"}]}')
        reviewed = run_script(look["run"], lab, *bash, **variables)
        server.shutdown()

    assert missing.endswith("[exit code 22]")
    assert open_to_all == (
        "::error::quotas-approval has no required reviewers, so nobody approved this plan: its "
        "changes wait.\n[exit code 1]"
    )
    assert reviewed == "[exit code 0]"


def test_the_job_of_gitlab_reviews_a_merge_request(lab: Lab) -> None:
    """The script of the component writes a note and a code quality report."""
    lab.put({"user=alice": {RATE: 10 * MIB}})
    begin(lab, alice=10)
    change(lab, alice=2)
    checkout = lab.folder.parent
    text = (ROOT / "templates" / "review.yml").read_text("utf-8")
    specification, _ = yaml.safe_load_all(text)
    for name, one in specification["spec"]["inputs"].items():
        given = {"desired-state": str(checkout), "package": "quota-ops"}
        value = given.get(name) or str(one["default"])
        text = text.replace(f"$[[ inputs.{name} ]]", value)
    _, jobs = yaml.safe_load_all(text)
    _, review = jobs["quota-ops review"]["script"]

    with serve_comments(f"{MARKER}\nforged") as api:
        variables = {
            "GITLAB_CI": "true",
            "GITLAB_TOKEN": TOKEN,
            "CI_API_V4_URL": api.address,
            "CI_PROJECT_ID": "3",
            "CI_PROJECT_URL": "https://gitlab.com/o/r",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(checkout, "rev-parse", "main"),
            "CI_COMMIT_SHA": head(checkout),
        }
        ended = subprocess.run(
            ["sh", "-ec", review],  # noqa: S607 - as a runner
            env=environment_of(lab, **variables),
            cwd=lab.root,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (ended.returncode, ended.stderr, api.methods) == (1, "", ["GET", "POST"])
    line = f"https://gitlab.com/o/r/-/blob/{head(checkout)}/demo/team.yaml#L4"
    assert line in api.comments[1]
    report = json.loads((lab.root / "quota-ops-review" / "code-quality.json").read_text())
    assert [(one["check_name"], one["severity"], one["location"]) for one in report] == [
        ("cut", "minor", {"path": "demo/team.yaml", "lines": {"begin": 4}})
    ]
