"""The login of this process: what a record notes beside the name that somebody gives."""

import getpass


def find_login() -> str:
    """The name under which somebody is logged in here; `unknown` where there is none."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have no name
        return "unknown"
