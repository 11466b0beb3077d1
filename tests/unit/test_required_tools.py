"""Set-up lists what is missing, and how to install it, before any download."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "required_tools.sh"
JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
NO_PYTHON = """\
Missing: Python 3.11, 3.12 or 3.13
  Debian, Ubuntu: sudo apt-get install python3 python3-venv
  macOS:          brew install python@3.13
"""


def no_java(found: str) -> str:
    """Return the error when the Java on the PATH is unsuitable."""
    home = '"$(brew --prefix openjdk@21)/libexec/openjdk.jdk/Contents/Home"'
    return f"""\
Missing: Java 17 or newer (java: {found})
  Debian, Ubuntu: sudo apt-get install default-jre-headless
  macOS:          brew install openjdk@21 && export JAVA_HOME={home}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a PATH of one folder, with the two programs that the script itself needs."""
    for program in ("sed", "sh"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    return tmp_path


def put(path: Path, name: str, does: str) -> None:
    """Put a program of one shell line on the PATH."""
    (path / name).write_text(f"#!/bin/sh\n{does}\n")
    (path / name).chmod(0o755)


def run(path: Path, *wanted: str) -> tuple[int, str, str]:
    """Run the script with that PATH and home; return its exit code and output."""
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT), *wanted],
        env={"PATH": str(path), "HOME": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_everything_missing_is_named_at_once(path: Path) -> None:
    """One call of set-up's check lists everything that is missing."""
    assert run(path) == (1, "", NO_PYTHON + no_java("not found"))


def test_a_fitting_python_is_found_behind_one_that_does_not_fit(path: Path) -> None:
    """An old python3 or a broken shim is skipped for the python3.NN beside it."""
    put(path, "python3", "exit 127")
    put(path, "python3.12", f'exec {sys.executable} "$@"')
    put(path, "java", JAVA_17)
    assert run(path) == (0, f"{path}/python3.12\n", "")


def test_the_python_that_was_asked_for_is_taken(path: Path) -> None:
    """`make test PYTHON=python3.12` uses that version, even if pyenv has not selected it."""
    put(path, "python3", f'exec {sys.executable} "$@"')
    put(path, "python3.12", "exit 127")
    put(path, "java", JAVA_17)
    assert run(path, "python3") == (0, f"{path}/python3\n", "")
    installed = path / ".pyenv" / "versions" / "3.12.1" / "bin"
    installed.mkdir(parents=True)
    put(installed, "python3.12", f'exec {sys.executable} "$@"')
    assert run(path, "python3.12") == (0, f"{installed}/python3.12\n", "")


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        (
            "python3.13",
            """\
Missing: python3.13
  Debian, Ubuntu: sudo apt-get install python3.13 python3.13-venv
  macOS:          brew install python@3.13
""",
        ),
        ("python3.10", NO_PYTHON.replace("3.13\n", "3.13 (python3.10: 3.10)\n", 1)),
        ("python3.14", NO_PYTHON.replace("3.13\n", "3.13 (python3.14: not found)\n", 1)),
    ],
)
def test_a_python_that_cannot_be_used_is_named(path: Path, wanted: str, missing: str) -> None:
    """No other Python replaces one that is not installed, too old or too new."""
    put(path, "python3", f'exec {sys.executable} "$@"')
    put(path, "python3.10", "echo 3.10")
    put(path, "java", JAVA_17)
    assert run(path, wanted) == (1, "", missing)


def test_a_python_without_venv_is_told_its_package(path: Path) -> None:
    """Debian packages venv apart from Python: the error names the package for that version."""
    block = "import sys; sys.modules['ensurepip'] = None;"
    put(path, "python3", f'exec {sys.executable} -c "{block} $2"')
    put(path, "java", JAVA_17)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = f"""\
Missing: the venv module of Python {version}
  Debian, Ubuntu: sudo apt-get install python{version}-venv
  macOS:          brew install python@{version}
"""
    assert run(path) == (1, "", expected)


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "11.0.2"),
        ('java version "1.8.0_392"', "1.8.0_392"),
        ("Unable to locate a Java Runtime.", "not found"),
    ],
)
def test_an_old_java_is_named_with_its_version(path: Path, says: str, found: str) -> None:
    """A Java before 17, or macOS's placeholder for none, is rejected."""
    put(path, "python3", f'exec {sys.executable} "$@"')
    put(path, "java", f"echo '{says}' >&2")
    assert run(path) == (1, "", no_java(found))
