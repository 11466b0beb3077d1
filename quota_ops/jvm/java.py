"""Find the Java that runs Kafka and Spark, and check that its version is new enough."""

import os
import re
import shutil
import subprocess

from quota_ops.model.errors import MissingTool, find_limit

OLDEST_JAVA = 17
PATIENCE = 10.0
"""Seconds that `java -version` may take."""
# Short-lived, small JVMs: starting fast matters more than running fast.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_REMEDY = """Debian, Ubuntu: sudo apt-get install default-jre-headless
  macOS: brew install openjdk@21 && \
export JAVA_HOME="$(brew --prefix openjdk@21)/libexec/openjdk.jdk/Contents/Home\""""


def find_java() -> str:
    """Return the path of JAVA_HOME's java or, without JAVA_HOME, of the java on the PATH.

    Raises MissingTool, with the command that installs it, when it is missing, older than 17 or
    does not print its version.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise MissingTool(f"Java {OLDEST_JAVA} or newer is needed; {where} has none.", _REMEDY)
    version = re.search(r'version "(\d+)[^"]*"', _read_version(java))
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = version[0] if version else "one that does not print its version"
        raise MissingTool(f"Java {OLDEST_JAVA} or newer is needed; {java} is {found}.", _REMEDY)
    return java


def _read_version(java: str) -> str:
    """Return the output of `java -version`; empty when it cannot be started, or hangs."""
    command = [java, "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if find_limit(error):
            raise
        return ""
    return answer.stderr + answer.stdout
