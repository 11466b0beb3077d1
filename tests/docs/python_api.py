"""The public Python API, read from its source without importing Airflow."""

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

from tests.docs.markdown import ROOT

MODULES = (
    "quota_ops.airflow",
    "spark_jobs.compare_effective_limits",
    "spark_jobs.diff_quotas",
    "spark_jobs.digest_usage",
)
"""The modules whose `__all__` is the public interface."""


def python_api() -> str:
    """Each exported name with its signature and its promise."""
    return "\n" + "".join(
        f"## {module}\n\n" + "".join(_entry(module, name) for name in exports(module))
        for module in MODULES
    )


def exports(module: str) -> list[str]:
    """Return what a module lists in `__all__`."""
    for statement in _source(module).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    raise AssertionError(f"{module} has no __all__")


def signature(module: str, name: str) -> str:
    """Return a function or class as it is called: its arguments, their types and defaults."""
    function = _callable(_definition(module, name))
    assert function
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    arguments = ast.unparse(function.args).removeprefix("self, ").replace(", ", ",\n    ")
    arguments = re.sub(r"(\[[^]]*),\n    ", r"\1, ", arguments)
    if name[0].isupper():
        returns = ""
    return f"{name}(\n    {arguments},\n){returns}" if arguments else f"{name}(){returns}"


def _entry(module: str, name: str) -> str:
    definition = _definition(module, name)
    promise = inspect.cleandoc(ast.get_docstring(definition) or "")
    if not isinstance(definition, ast.ClassDef) or _callable(definition):
        code = f"```python\n{signature(module, name)}\n```\n\n"
        return f"### {name}\n\n{code}{promise}\n\n"
    fields = "".join(f"- `{field}`: {words}\n" for field, words in _fields(definition))
    return f"### {name}\n\n{promise}\n\n{fields}\n"


def _callable(definition: ast.FunctionDef | ast.ClassDef) -> ast.FunctionDef | None:
    """Return a function, or the `__init__` of a class; None for a class without one."""
    if isinstance(definition, ast.FunctionDef):
        return definition
    functions = [one for one in definition.body if isinstance(one, ast.FunctionDef)]
    return next((function for function in functions if function.name == "__init__"), None)


def _fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The fields of a class, each with the docstring under it."""
    body: list[ast.stmt] = [*definition.body, ast.Pass()]
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign):
            words = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else ""
            kind = ast.unparse(field.annotation).strip("'")
            yield ast.unparse(field.target), " ".join(f"{kind}. {words}".split())


def _definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Find a definition, in the module or where the module imports it from."""
    for statement in _source(module).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name == name:
            return statement
        if isinstance(statement, ast.ImportFrom) and name in {one.name for one in statement.names}:
            return _definition(str(statement.module), name)
    raise AssertionError(f"{module} exports {name} and has none")


def _source(module: str) -> ast.Module:
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))
