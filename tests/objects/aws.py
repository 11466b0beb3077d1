"""`aws s3 sync`, as far as the documentation uses it: copies files to a bucket, or back.

It is a foreign tool for quota-ops: it copies bytes, and neither metadata nor permissions.
"""

import os
import sys
from pathlib import Path

from obstore.store import from_url


def sync(source: str, target: str) -> None:
    """Copy every file below a folder or an address to the other, which is an address or folder."""
    is_upload = target.startswith("s3://")
    store = from_url(
        target if is_upload else source,
        client_options={"allow_http": os.environ.get("AWS_ALLOW_HTTP") == "true"},
    )
    if is_upload:
        for file in Path(source).rglob("*"):
            if file.is_file():
                store.put(file.relative_to(source).as_posix(), file.read_bytes())
        return
    for some in store.list():
        for meta in some:
            file = Path(target, meta["path"])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bytes(store.get(meta["path"]).bytes()))


if __name__ == "__main__":
    _, tool, command, source, target = sys.argv
    if (tool, command) != ("s3", "sync"):
        sys.exit(f"{tool} {command} is not known here")
    sync(source, target)
