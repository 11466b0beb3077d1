"""Only jars with the pinned SHA-256 are used; missing and damaged ones are fetched again."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quota_ops.lab.kafka.jars import (
    DEFAULT_VERSION,
    build_progress,
    fetch_jars,
    pinned_versions,
    pins_of,
)
from quota_ops.model.errors import InvalidInput, MissingTool

JAR = "re2j-1.8.jar"


@pytest.fixture(scope="session")
def good_jars() -> Path:
    """The jars of the real cache, as set-up fetched them."""
    return fetch_jars()


@pytest.fixture
def cache(tmp_path: Path, good_jars: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the jar folder of a filled cache for this test."""
    folder = tmp_path / "cache" / "kafka" / DEFAULT_VERSION
    shutil.copytree(good_jars, folder)
    monkeypatch.setenv("QUOTA_OPS_CACHE", str(tmp_path / "cache"))
    return folder


def put_repository(folder: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a java on the PATH that fetches by copying `jars`; return its list of calls.

    With no folder to copy it fails with an error like Ivy's without a network.
    """
    java, calls = folder / "bin" / "java", folder / "calls"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        """[ "$1" = -version ] && { echo 'openjdk version "17"' >&2; exit; }\n"""
        f"echo fetch >> {calls}\n"
        f"cp -r {jars} jars || {{ echo 'SERVER ERROR: no route to host'; exit 1; }}\n"
    )
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent), prepend=":")
    calls.touch()
    return calls


def test_whole_jars_need_no_java(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If every jar matches its pin nothing is fetched, so neither Java nor a network is needed."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert fetch_jars() == cache


@pytest.mark.parametrize("damage", ["changed", "missing", "all gone"])
def test_damage_is_mended(
    cache: Path, tmp_path: Path, good_jars: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """After a changed, a missing or no jar, all are fetched once, and nothing else remains.

    Nor does what an earlier process had fetched when it was killed.
    """
    calls = put_repository(tmp_path, good_jars, monkeypatch)
    (cache.parent / ".fetching-killed").mkdir()
    if damage == "changed":
        (cache / JAR).write_bytes(b"another jar")
    elif damage == "missing":
        (cache / JAR).unlink()
    else:
        shutil.rmtree(tmp_path / "cache")
    with ThreadPoolExecutor(4) as callers:
        found = [callers.submit(fetch_jars) for _ in range(4)]
    assert {each.result() for each in found} == {cache}
    assert (cache / JAR).read_bytes() == (good_jars / JAR).read_bytes()
    assert calls.read_text() == "fetch\n"
    assert {each.name for each in cache.parent.iterdir()} == {".lock", DEFAULT_VERSION}


def test_progress_counts_to_the_end(
    cache: Path, tmp_path: Path, good_jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress shows how many of the jars are there; the last line shows all of them."""
    put_repository(tmp_path, good_jars, monkeypatch)
    (cache / JAR).unlink()
    seen: list[tuple[int, int]] = []
    fetch_jars(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (46, 46)
    assert seen == sorted(seen)


def test_a_repository_that_serves_other_bytes_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jar with another SHA-256 is named and never reaches the cache."""
    other = tmp_path / "other"
    shutil.copytree(cache, other)
    (other / JAR).write_bytes(b"another jar")
    put_repository(tmp_path, other, monkeypatch)
    shutil.rmtree(cache)
    with pytest.raises(MissingTool) as error:
        fetch_jars()
    assert error.value.message == (
        "1 jars of Apache Kafka 4.3.1 do not have the pinned SHA-256: re2j-1.8.jar."
    )
    assert {each.name for each in cache.parent.iterdir()} == {".lock"}


def test_a_failed_fetch_is_told_in_ivys_words(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network the error contains Ivy's message and a remedy."""
    put_repository(tmp_path, tmp_path / "nowhere", monkeypatch)
    (cache / JAR).unlink()
    with pytest.raises(MissingTool) as error:
        fetch_jars()
    assert error.value.message.startswith(
        "Apache Kafka 4.3.1 could not be fetched. The output of Ivy:\n"
    )
    assert error.value.message.endswith("SERVER ERROR: no route to host")
    assert error.value.remedy == (
        "The jars come from Maven Central. Check the network, then run the command again."
    )


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the cache cannot be created, the error names the folder and the variable that moves it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("QUOTA_OPS_CACHE", str(tmp_path / "file"))
    with pytest.raises(InvalidInput) as error:
        fetch_jars()
    assert str(error.value) == (
        f"Kafka's jars cannot be stored in {tmp_path}/file/kafka/4.3.1: Not a directory.\n"
        "  Set QUOTA_OPS_CACHE to a writable folder."
    )


def test_a_version_without_pins_is_named() -> None:
    """An unknown Kafka version is invalid input, with the list of known ones."""
    with pytest.raises(InvalidInput) as error:
        fetch_jars("0.8")
    assert str(error.value) == (
        "There is no sandbox for Apache Kafka 0.8.\n  Choose one of 3.9.2, 4.3.1, 4.4.0."
    )


@pytest.mark.parametrize(
    ("version", "jars", "log_settings"),
    [
        ("3.9.2", 57, "log4j.properties"),
        ("4.3.1", 46, "log4j2.properties"),
        ("4.4.0", 44, "log4j2.properties"),
    ],
)
def test_the_pins_are_whole(version: str, jars: int, log_settings: str) -> None:
    """Every jar that Ivy fetches has a checksum, and the log settings have their file."""
    pins = pins_of(version)
    named = re.findall(r'name="(.+)" rev="(.+)" ', pins.ivy.read_text())
    assert {f"{name}-{revision}.jar" for name, revision in named} == pins.checksums.keys()
    assert len(pins.checksums) == jars
    assert {len(digest) for digest in pins.checksums.values()} == {64}
    assert pins.log_settings.name == log_settings


def test_versions_stand_in_their_order() -> None:
    """The pinned versions are listed from the oldest, and the default version is one of them."""
    assert pinned_versions() == ("3.9.2", "4.3.1", "4.4.0")
    assert DEFAULT_VERSION in pinned_versions()


def test_a_fetch_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside a terminal a fetch prints one line; without a fetch nothing is printed."""
    show = build_progress("3.9.2")
    assert capsys.readouterr().err == ""
    for done in (0, 1, 57):
        show(done, 57)
    assert capsys.readouterr().err == "fetching Apache Kafka 3.9.2, once: 57 jars, 45 MB ...\n"
