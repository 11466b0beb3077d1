"""Wrong settings for a container of Azure: each error names Azure's variables."""

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import find_run_store, open_place
from tests.objects.azure_server import ACCOUNT

NAMES = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, for example."


def test_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container without the name of its account is not valid, and the remedy names variables."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)

    with pytest.raises(InvalidInput, match="az://alone cannot be opened") as refused:
        open_place("az://alone/a")
    assert str(refused.value.remedy).endswith(NAMES)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("container", "account", "why"),
    [
        ("no-such", ACCOUNT, "the bucket does not exist"),
        ("runs", "nobody", "these credentials lack the permission"),
    ],
)
@pytest.mark.parametrize("address", ["az"], indirect=True)
def test_what_azure_refuses(
    container: str, account: str, why: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that does not exist and an account without rights there have errors."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", account)
    open_client.cache_clear()

    with pytest.raises(InvalidInput) as refused:
        find_run_store(address.replace("runs", container)).new_run("demo")
    assert refused.value.message.endswith(why)
