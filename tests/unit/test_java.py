"""Java is found, or reported as missing with the command that installs it."""

from pathlib import Path

import pytest

from quota_ops.jvm.java import find_java
from quota_ops.model.errors import MissingTool


def put_java(folder: Path, says: str) -> Path:
    """Create a program named java in a folder, which prints the given line for any arguments."""
    return put_program(folder, f"#!/bin/sh\necho '{says}' >&2\n")


def put_program(folder: Path, text: str) -> Path:
    """Create a program named java in a folder."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(text)
    java.chmod(0o755)
    return java


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole PATH, on a machine without JAVA_HOME."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.4", "25-ea"])
def test_a_new_enough_java_is_taken(only_here: Path, version: str) -> None:
    """Java 17 and every later version is accepted."""
    java = put_java(only_here, f'openjdk version "{version}" 2025-04-15')
    assert find_java() == str(java)


def test_java_home_goes_before_the_path(
    only_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If JAVA_HOME is set, its java is used, as pyspark does."""
    put_java(only_here, 'openjdk version "21"')
    chosen = put_java(tmp_path / "jdk" / "bin", 'openjdk version "17"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == str(chosen)


@pytest.mark.usefixtures("only_here")
def test_no_java_names_the_command() -> None:
    """Without Java the error shows how to install it on Debian, Ubuntu and macOS."""
    with pytest.raises(MissingTool) as error:
        find_java()
    assert str(error.value) == (
        "Java 17 or newer is needed; the PATH has none.\n"
        "  Debian, Ubuntu: sudo apt-get install default-jre-headless\n"
        "  macOS: brew install openjdk@21 && "
        'export JAVA_HOME="$(brew --prefix openjdk@21)/libexec/openjdk.jdk/Contents/Home"'
    )
    assert error.value.exit_code == 2


def test_a_java_home_without_java_is_named(
    only_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong JAVA_HOME is an error that names it, even if the PATH has a Java."""
    put_java(only_here, 'openjdk version "17"')
    monkeypatch.setenv("JAVA_HOME", "/no/jdk")
    with pytest.raises(MissingTool, match=r"JAVA_HOME \(/no/jdk\) has none"):
        find_java()


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ('openjdk version "11.0.2" 2019-01-15', 'is version "11.0.2"'),
        ('java version "1.8.0_392"', 'is version "1.8.0_392"'),
        ("No Java runtime present", "is one that does not print its version"),
    ],
)
def test_an_old_java_is_named(only_here: Path, says: str, found: str) -> None:
    """A Java before 17, or a program that looks like one, is named with path and version."""
    java = put_java(only_here, says)
    with pytest.raises(MissingTool) as error:
        find_java()
    assert error.value.message == f"Java 17 or newer is needed; {java} {found}."


@pytest.mark.parametrize("text", ["#!/bin/sh\nexec /bin/sleep 60\n", "not a program"])
def test_a_java_that_cannot_be_asked_is_named(
    only_here: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A Java that hangs or is not a program is soon an error, not a wait or a traceback."""
    monkeypatch.setattr("quota_ops.jvm.java.PATIENCE", 0.2)
    java = put_program(only_here, text)
    with pytest.raises(MissingTool) as error:
        find_java()
    found = "one that does not print its version"
    assert error.value.message == f"Java 17 or newer is needed; {java} is {found}."


def test_spark_wants_the_same_java(only_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old Java is reported before Spark starts, with the engine that needs no Java."""
    from quota_ops.sql.spark import local_session  # noqa: PLC0415 - pyspark

    # A session that an earlier test of this process left running would be used as it is.
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    java = put_java(only_here, 'openjdk version "11.0.2" 2019-01-15')
    with pytest.raises(MissingTool) as error, local_session([]):
        pass
    assert error.value.message == f'Java 17 or newer is needed; {java} is version "11.0.2".'
    assert str(error.value).endswith("\n  Without Java: --engine embedded")
