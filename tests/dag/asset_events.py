"""The events of assets that the runs of a repository emitted."""

from typing import Any

from tests.dag.repository import Repository


def list_events(repository: Repository) -> list[tuple[str, Any]]:
    """Return the name of the asset of each event, in order, and the counts in its extra."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    runs = {run.name for run in repository.store.glob("runs/*/*")}
    with create_session() as session:
        found = session.scalars(select(AssetEvent).order_by(AssetEvent.id)).all()
        return [(one.asset.name, one.extra["counts"]) for one in found if one.extra["run"] in runs]
