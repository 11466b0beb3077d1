"""The public Python API exists, and changes only on purpose."""

from importlib import import_module

import pytest

from tests.docs.markdown import ROOT
from tests.docs.python_api import MODULES, exports, signature

BUILD_DAGS = """\
build_dags(
    desired_state: Path,
    run_store: str | None=None,
    drift_schedule: str | None='0 * * * *',
    approval_timeout: timedelta=timedelta(hours=4),
    notify: Notify | None=None,
    *,
    approvers: Sequence[str | HITLUser] | None=None,
    default_args: Mapping[str, Any] | None=None,
    task_options: Mapping[str, TaskOptions] | None=None,
    engine: str='spark',
    dag_id_prefix: str='',
    schedule_jitter: timedelta=timedelta(0),
) -> dict[str, DAG]"""
QUOTA_RECONCILE = """\
QuotaReconcile(
    cluster: str,
    desired_state: Path,
    *,
    run_store: str | None=None,
    approval_timeout: timedelta=timedelta(hours=4),
    approvers: Sequence[str | HITLUser] | None=None,
    notify: Notify | None=None,
    default_args: Mapping[str, Any] | None=None,
    task_options: Mapping[str, TaskOptions] | None=None,
    engine: str='spark',
    group_id: str | None=None,
    **group: Any,
)"""
COMPARE = "main(\n    folders: list[str],\n    *,\n    multi_line: bool=False,\n) -> None"
DIFF = "main(\n    folders: list[str],\n) -> None"
DIGEST = (
    "main(\n    rates: str,\n    scrapes: str,\n    throttle_times: str,\n    run_store: str,\n"
    "    day: date,\n    *,\n    step: int=60,\n) -> None"
)


@pytest.mark.parametrize("module", MODULES)
def test_every_exported_name_is_there(module: str) -> None:
    """What a module lists in `__all__` can be imported from it."""
    found = import_module(module)
    assert [name for name in exports(module) if not hasattr(found, name)] == []


def test_the_signatures_are_those_that_users_call() -> None:
    """The exported names and signatures are as listed: a change may break DAG files and jobs."""
    airflow, compare, diff, digest = MODULES
    assert exports(airflow) == [
        "InvalidInput",
        "News",
        "Notify",
        "QuotaReconcile",
        "TaskOptions",
        "applied_asset",
        "build_dags",
        "drifted_asset",
        "guard_params",
    ]
    assert signature(airflow, "QuotaReconcile") == QUOTA_RECONCILE
    assert signature(airflow, "build_dags") == BUILD_DAGS
    assert signature(compare, "main") == COMPARE
    assert signature(diff, "main") == DIFF
    assert signature(digest, "main") == DIGEST


PASSED_ON = {"quota_ops.kafka.client.kafka_python"}
"""The module that re-exports names of a library: its `__all__` has none of quota-ops."""


def test_no_other_module_promises_anything() -> None:
    """Only public modules have `__all__`."""
    places = [*(ROOT / "quota_ops").rglob("*.py"), *(ROOT / "spark_jobs").glob("*.py")]
    public = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in places
        if "\n__all__ = " in path.read_text("utf-8")
    }
    assert {name.removesuffix(".__init__") for name in public - PASSED_ON} == set(MODULES)
