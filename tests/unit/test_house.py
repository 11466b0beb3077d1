"""House rules that no linter checks, and the import directions that import-linter checks."""

import ast
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from quota_ops.model.text import plural

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for folder in ("quota_ops", "spark_jobs", "dags", "scripts", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
BANNED = re.compile(r"(^|_)(manager|helpers?|utils?|common|base|core|handler|service)(_|$)")
Nodes = dict[str, list[ast.AST]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    """Return the syntax nodes of each module that is installed, by its path."""
    shipped = [path.relative_to(ROOT).as_posix() for path in MODULES if "tests" not in path.parts]
    return {path: [*ast.walk(ast.parse((ROOT / path).read_text()))] for path in shipped}


def test_imports_run_one_way() -> None:
    """Every contract of import-linter is kept."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, "0 broken" in ran.stdout) == (0, True), ran.stdout


def test_the_model_stands_on_little(nodes: Nodes) -> None:
    """The model imports the standard library and msgspec alone, anywhere in a module."""
    model = [node for path in nodes if path.startswith("quota_ops/model/") for node in nodes[path]]
    modules = [name.name for node in model if isinstance(node, ast.Import) for name in node.names]
    modules += [str(node.module) for node in model if isinstance(node, ast.ImportFrom)]

    packages = {module.partition(".")[0] for module in modules}
    assert packages - sys.stdlib_module_names == {"quota_ops", "msgspec"}


def test_each_decision_has_a_number_of_its_own() -> None:
    """The number in a decision's file name is unique, and begins its title."""
    files = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in files]

    assert sorted(set(numbers)) == numbers
    assert [path.read_text("utf-8").split(".")[0] for path in files] == [f"# {n}" for n in numbers]


def test_names_say_what_is_in_a_module() -> None:
    """No module is named by a word that could name any module."""
    assert [path.name for path in MODULES if BANNED.search(path.stem)] == []


def test_lock_files_hold_no_addresses() -> None:
    """The locks contain package names and hashes, and no addresses: each user chooses the index."""
    locks = sorted(ROOT.glob("*.lock")) + sorted(ROOT.glob("quota_ops/lab/kafka/versions/*/*"))

    assert [lock.name for lock in locks if "://" in lock.read_text()] == []


def test_no_file_time_is_read() -> None:
    """A copied run store decides and shows the same: order and times are in names and contents."""
    times = re.compile(r"st_(m|c|a|birth)time|st_ino|get[mca]time|samefile|\butime\b")
    modules = [path for path in MODULES if "tests" not in path.parts]
    # One compares clocks by a file just written, one two files named on the command line, and one
    # notices that a cluster.yaml has changed since this process read it.
    expected = {"local.py", "clusters.py"}

    assert {path.name for path in modules if times.search(path.read_text())} == expected


_FILE_CALLS = re.compile(
    r"\.(chmod|glob|hardlink_to|is_dir|is_file|iterdir|lstat|mkdir|read_bytes|rename|rglob|rmdir"
    r"|samefile|stat|symlink_to|touch|unlink|write_bytes)\b|\b(shutil|fcntl)\.|\bos\.(?!environ)"
)
_FILES_OF_USERS = {
    "quota_ops/sql/embedded.py": "the folder of what does not fit into DuckDB's memory",
    "quota_ops/sql/embedded_effects.py": "copies of an inventory, which DuckDB reads and writes",
    "quota_ops/sql/embedded_usage.py": "links to recorded days, which DuckDB reads",
    "quota_ops/sql/spark_archive.py": "the jars of Spark, and the archive of their classes",
    "quota_ops/sql/spark_s3.py": "the jars of Hadoop's connector for S3",
}
"""Files outside the run store that these packages open."""


def test_what_is_kept_is_known_by_place_alone() -> None:
    """Code above the store uses places alone: no path, no rename, no folder, no `os`."""
    rooms = ("stages", "runs", "report", "sql")
    above = [path for room in rooms for path in (ROOT / "quota_ops" / room).rglob("*.py")]
    seam = {"local.py", "process.py", "snapshot.py"}
    store = [path for path in (ROOT / "quota_ops" / "store").rglob("*.py") if path.name not in seam]
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in [*above, *store, ROOT / "spark_jobs" / "diff_quotas.py"]
    }
    wrong = {name: found[0] for name, text in texts.items() if (found := _FILE_CALLS.search(text))}
    paths = [name for name, text in texts.items() if "/store/" in name and "pathlib" in text]

    assert wrong.keys() == _FILES_OF_USERS.keys(), wrong
    assert paths == []


_NOUNS = "batch|broker|change|cluster|entity|file|finding|guard|key|problem|quota|removal|row|task"
_MANY = re.compile(rf" (more )?({'|'.join(plural(2, noun) for noun in _NOUNS.split('|'))})\b")


def test_counts_and_percents_are_written_in_one_place(nodes: Nodes) -> None:
    """No other module writes a plural or rounds a percentage (`1 entities`, `-100 %`)."""
    wrong = [
        f"{path}:{getattr(node, 'lineno', 0)}"
        for path in nodes
        if path.startswith("quota_ops/") and path != "quota_ops/model/text.py"
        for node in nodes[path]
        if _makes_a_plural(node) or _rounds_a_percent(node)
    ]

    assert wrong == []


def _makes_a_plural(node: ast.AST) -> bool:
    """Whether it chooses a word by `== 1`, or writes a number before a plural."""
    match node:
        case ast.IfExp(test=ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=1)])):
            return all(isinstance(one, ast.Constant) for one in (node.body, node.orelse)) and any(
                isinstance(getattr(one, "value", None), str) for one in (node.body, node.orelse)
            )
        case ast.JoinedStr(values=values):
            return any(
                isinstance(one, ast.FormattedValue)
                and isinstance(after, ast.Constant)
                and _MANY.match(str(after.value)) is not None
                and "counted" not in ast.unparse(one)
                for one, after in pairwise(values)
            )
    return False


def _rounds_a_percent(node: ast.AST) -> bool:
    """Whether a number is formatted with fixed digits before a percent sign."""
    if not isinstance(node, ast.JoinedStr):
        return False
    return any(
        isinstance(one, ast.FormattedValue)
        and one.format_spec is not None
        and re.search(r"\.\d", ast.unparse(one.format_spec)) is not None
        and isinstance(after, ast.Constant)
        and str(after.value).lstrip().startswith("%")
        for one, after in pairwise(node.values)
    )


_DOCUMENTED = {
    "_asdict",
    "_exit",
    "_field_defaults",
    "_fields",
    "_make",
    "_replace",
    "_typeshed",
    "_value_",
}
"""Documented names of the standard library and of typeshed that begin with `_`."""


def test_no_private_name_of_a_library_is_used(nodes: Nodes) -> None:
    """A library may change its private names in any release."""
    every = [node for some in nodes.values() for node in some]
    own = {
        *(node.name for node in every if isinstance(node, ast.FunctionDef)),
        *(node.id for node in every if isinstance(node, ast.Name)),
        *(
            node.attr
            for node in every
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        ),
    }
    used = {node.attr for node in every if isinstance(node, ast.Attribute)}
    used |= {
        name
        for node in every
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("quota_ops")
        for name in (*(node.module or "").split("."), *(one.name for one in node.names))
    }
    private = {one for one in used - own - _DOCUMENTED if one[:1] == "_" and one[:2] != "__"}

    assert private == set()
