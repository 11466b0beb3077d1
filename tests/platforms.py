"""The schemas of CI platforms, as check-jsonschema carries them."""

import json
from importlib.resources import files
from typing import Any


def schema(name: str) -> Any:
    """Return the schema of a platform's file: `github-workflows`, `github-actions`, `gitlab-ci`."""
    vendor = files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{name}.json"
    return json.loads(vendor.read_text("utf-8"))
