"""Whose an entity is, by the mapping of cluster.yaml, and which quotas change their owner."""

from ipaddress import ip_address, ip_network
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.owners import Owner, OwnerChange, OwnerIndex, list_owner_changes
from quota_ops.model.stored import from_json, to_json

NAMES = st.text("ab-", max_size=4)
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.1.0.1", "::1", "fe80::1"])
NETWORKS = ("10.0.0.0/8", "10.0.0.0/24", "10.0.0.2", "::/0", "::1", "0.0.0.0/0")
ENTITIES = st.one_of(
    st.dictionaries(st.sampled_from([USER, CLIENT_ID]), st.none() | NAMES, min_size=1),
    st.fixed_dictionaries({IP: st.none() | ADDRESSES | st.just("localhost")}),
).map(Entity.of)


@st.composite
def mappings(draw: st.DrawFn) -> tuple[Owner, ...]:
    """Return owners of which no two have the same."""
    owners = [Owner(name) for name in ("one", "two", "three")]
    texts = draw(st.sets(NAMES.filter(bool), max_size=6))
    for field, values in (
        ("users", texts),
        ("user_prefixes", texts),
        ("client_ids", texts),
        ("client_id_prefixes", texts),
        ("ips", NETWORKS),
    ):
        for value in sorted(values):
            number = draw(st.integers(0, 3))
            if number < len(owners):
                more: dict[str, Any] = {field: (*getattr(owners[number], field), value)}
                owners[number] = replace(owners[number], **more)
    owners[0] = replace(owners[0], defaults=draw(st.booleans()))
    return tuple(owners)


def expect_owner(owners: tuple[Owner, ...], entity: Entity) -> str | None:
    """Return the owner of an entity by reading the rules one after the other."""
    names = entity.as_dict()
    for kind, exact, prefixes in (
        (USER, "users", "user_prefixes"),
        (CLIENT_ID, "client_ids", "client_id_prefixes"),
    ):
        if (name := names.get(kind)) is None:
            continue
        for owner in owners:
            if name in getattr(owner, exact):
                return owner.name
        found = [
            (len(prefix), owner.name)
            for owner in owners
            for prefix in getattr(owner, prefixes)
            if name.startswith(prefix)
        ]
        if found:
            return max(found)[1]
    if (address := names.get(IP)) is not None:
        if address == "localhost":
            return None
        networks = [(ip_network(text), owner.name) for owner in owners for text in owner.ips]
        inside = [
            (network.prefixlen, name)
            for network, name in networks
            if ip_address(address) in network
        ]
        return max(inside)[1] if inside else None
    is_default = all(name is None for name in names.values())
    return owners[0].name if is_default and owners[0].defaults else None


@given(mappings(), ENTITIES)
@example((Owner("one", user_prefixes=("a",)),), Entity.of({USER: "ab", CLIENT_ID: "b"}))
@example((Owner("one", ips=("0.0.0.0/0",)),), Entity.of({IP: "localhost"}))
@example((Owner("one", ips=("10.0.0.0/8",)),), Entity.of({IP: "192.0.2.1"}))
def test_the_most_specific_claim_decides(owners: tuple[Owner, ...], entity: Entity) -> None:
    """Users before client ids, names before prefixes, and the longest prefix or network first."""
    assert OwnerIndex(owners).find_owner(entity) == expect_owner(owners, entity)


def test_files_and_folders() -> None:
    """A file is listed by its path, or by a folder above it."""
    owner = Owner("payments", files=("payments.yaml", "teams/pay/"))

    paths = ("payments.yaml", "teams/pay/a.yaml", "teams/payroll.yaml", "x/payments.yaml")
    assert [owner.has_file(path) for path in paths] == [True, True, False, False]
    assert [str(claim) for claim in replace(owner, defaults=True).claims()] == [
        "files: payments.yaml",
        "files: teams/pay/",
        "defaults: true",
    ]


@given(mappings())
def test_a_policy_keeps_its_owners(owners: tuple[Owner, ...]) -> None:
    """A policy as JSON has the same owners, and they decide what may be written."""
    policy = Policy("demo", "id", "demo", owners=owners)

    assert from_json(Policy, to_json(Policy, policy)) == policy
    assert policy.decisive_fields() != Policy("demo", "id", "demo").decisive_fields()


def test_which_quotas_change_their_owner() -> None:
    """Entities are grouped by both owners; what one side alone has changes none."""
    before = [
        ("user=a", "k", "x"),
        ("user=a", "l", "x"),
        ("user=b", "k", None),
        ("user=c", "k", "x"),
    ]
    after = [("user=a", "k", "y"), ("user=a", "l", "y"), ("user=b", "k", "y"), ("user=d", "k", "y")]
    many = OwnerChange("x", None, tuple(f"user={number}" for number in range(5)))

    assert list_owner_changes(before, after) == (
        OwnerChange("x", "y", ("user=a",)),
        OwnerChange(None, "y", ("user=b",)),
    )
    assert [change.text for change in list_owner_changes(before, after)] == [
        "user=a gets another owner: x -> y.",
        "user=b gets another owner: none -> y.",
    ]
    assert many.text == "user=0, user=1, user=2 and 2 more get another owner: x -> none."
