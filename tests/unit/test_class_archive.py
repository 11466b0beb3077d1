"""An archive of classes is used only by the Java and jars that it was recorded with, and whole."""

from pathlib import Path

import pytest

from quota_ops.jvm.class_archive import ClassArchive, record_classes

JAVA = ("bin/java", "release")


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    """Return the archive of a program with one jar, in an empty folder."""
    (tmp_path / "bin").mkdir()
    for name in (*JAVA, "a.jar"):
        (tmp_path / name).write_text(name)
    return ClassArchive(
        folder=tmp_path,
        program="demo",
        java=str(tmp_path / "bin" / "java"),
        class_path=[tmp_path / "a.jar"],
    )


def record(archive: ClassArchive, content: str) -> Path:
    """Keep a recorded archive; return its file."""
    recorded = archive.folder / "recorded"
    recorded.write_text(content)
    archive.keep(recorded)
    (file,) = archive.folder.glob("*.jsa")
    return file


def test_a_recorded_archive_is_used(archive: ClassArchive) -> None:
    """A program starts without an archive, and with it as soon as one is recorded."""
    assert archive.options() == ()
    file = record(archive, "classes")
    assert archive.options() == ("-Xlog:cds*=off", f"-XX:SharedArchiveFile={file}")


def test_a_newer_archive_replaces_the_older(archive: ClassArchive) -> None:
    """Only the newest archive of a program is kept."""
    assert record(archive, "classes") != record(archive, "other classes")


def test_recording_again_changes_nothing(archive: ClassArchive) -> None:
    """Two set-ups at the same time may record the same archive."""
    assert record(archive, "classes") == record(archive, "classes")


@pytest.mark.parametrize("content", ["", "class", "Classes"])
def test_a_damaged_archive_is_not_used(archive: ClassArchive, content: str) -> None:
    """The JVM would crash on an archive that is cut or changed."""
    record(archive, "classes").write_text(content)
    assert archive.options() == ()


@pytest.mark.parametrize("name", [*JAVA, "a.jar"])
@pytest.mark.parametrize("change", ["changed", "gone"])
def test_a_stale_archive_is_not_used(archive: ClassArchive, name: str, change: str) -> None:
    """An archive is ignored if the Java or the jars that it was made with have changed."""
    record(archive, "classes")
    (archive.folder / name).unlink()
    if change == "changed":
        (archive.folder / name).write_text("another one")
    assert archive.options() == ()


def test_a_recording_is_quiet(tmp_path: Path) -> None:
    """The JVM reports hundreds of classes that it cannot archive, which concerns no user."""
    options = ("-Xlog:cds*=off", f"-XX:ArchiveClassesAtExit={tmp_path}/demo")
    assert record_classes(tmp_path / "demo") == options
