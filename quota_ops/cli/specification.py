"""The options that say which entities are meant, as KIP-546 names them, and where they are read."""

from pathlib import Path

import click

names = click.option(
    "--names",
    multiple=True,
    metavar="TYPE=NAME[,…]",
    help="Parts with a name: user=alice,client-id=app. Given more than once, each is one part, "
    "and commas belong to its name. A name may be a JSON string: 'user=\"a,client-id=b\"'.",
)
defaults = click.option(
    "--defaults", multiple=True, metavar="TYPE[,…]", help="Types that are the default: user."
)
anyone = click.option(
    "--any",
    "anyone",
    multiple=True,
    metavar="TYPE[,…]",
    help="Types of any name, the default included.",
)
strict = click.option("--strict", is_flag=True, help="Leave out entities that have further types.")
actual = click.option(
    "--actual",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A snapshot that `describe --format jsonl` wrote, in place of the cluster.",
)
