"""The numbers of clients that a change concerns."""

from quota_ops.model.plans.client_effects import InventoryEffects, OwnerEffects
from quota_ops.model.stored import to_json


def test_the_numbers_of_all_owners() -> None:
    """The total adds the owners up, and JSON has each of them; nobody is zero everywhere."""
    pay = OwnerEffects("pay", 3, 4, 1, 2, 0, 1, 2, 1, 0, 1, 0)
    effects = InventoryEffects("clients.csv", (pay, pay._replace(owner=None)), "a1")

    assert effects.total == OwnerEffects(None, 6, 8, 2, 4, 0, 2, 4, 2, 0, 2, 0)
    assert to_json(InventoryEffects, effects) == {
        "inventory": "clients.csv",
        "attempt": "a1",
        "computed_from": None,
        "owners": [pay._asdict(), {**pay._asdict(), "owner": None}],
        "trouble": None,
        "agreed": 0,
    }
    assert InventoryEffects("clients.csv", ()).total == OwnerEffects(None, *[0] * 11)
