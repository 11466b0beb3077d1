"""Credentials of an AWS profile."""

import subprocess
import sys
from pathlib import Path

import pytest

from quota_ops.model.errors import MissingTool
from quota_ops.store.places.run_store import open_place
from tests.docs.markdown import ROOT
from tests.objects.server import S3Server

PROFILES = """\
[profile keys]
aws_access_key_id = writer
aws_secret_access_key = writer-secret
[profile process]
credential_process = /bin/cat {answer}
[profile broken]
credential_process = /bin/cat {answer}.no
"""
CREDENTIALS = """\
[file]
aws_access_key_id = writer
aws_secret_access_key = writer-secret
"""
ANSWER = '{"Version": 1, "AccessKeyId": "writer", "SecretAccessKey": "writer-secret"}'


def test_without_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_PROFILE without boto3 is an error that names the extra, not another identity."""
    monkeypatch.setenv("AWS_PROFILE", "quota-ops")
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)

    with pytest.raises(MissingTool, match=r"with the extra \[aws\], or unset AWS_PROFILE"):
        open_place("s3://without-boto3/a")


@pytest.mark.matrix
def test_profiles(s3: S3Server, tmp_path: Path) -> None:
    """Either file and a process give credentials; a failing process and no profile are named."""
    libraries = tmp_path / "libraries"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", "install", "--quiet", "--target", libraries, "boto3"], check=True)
    (tmp_path / "answer").write_text(ANSWER)
    (tmp_path / "config").write_text(PROFILES.format(answer=tmp_path / "answer"))
    (tmp_path / "credentials").write_text(CREDENTIALS)
    files = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }

    def ping(profile: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in s3.environment().items() if "ACCESS_KEY" not in k}
        given = {"PYTHONPATH": f"{ROOT}:{libraries}", "AWS_PROFILE": profile}
        return subprocess.run(
            [sys.executable, "-m", "quota_ops", "ping", "--run-store", "s3://runs/profiles"],
            env={**environment, **given, **files},
            capture_output=True,
            text=True,
            check=False,
        )

    for profile in ("keys", "file", "process"):
        ended = ping(profile)
        assert (ended.returncode, ended.stderr) == (0, "")
    for profile, why in (
        ("broken", "Error when retrieving credentials from custom-process"),
        ("nobody", "The config profile (nobody) could not be found"),
    ):
        ended = ping(profile)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"AWS_PROFILE {profile} cannot be read: {why}\n" in ended.stderr
