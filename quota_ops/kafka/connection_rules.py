"""Which settings of a connection need each other, and which would have no effect."""

from collections.abc import Mapping, Sequence

from quota_ops.kafka.connection_file import Line
from quota_ops.kafka.settings import DEFAULTS, SETTINGS
from quota_ops.model.errors import InvalidInput

_LOGIN = ("sasl.mechanism", "sasl.username", "sasl.password")


def check_together(lines: Mapping[str, Line], source: str) -> None:
    """Raises InvalidInput where settings do not make a connection together."""

    def need(names: Sequence[str], why: str) -> None:
        missing = [name for name in names if name not in lines]
        if missing:
            raise InvalidInput(f"{source}: {' and '.join(missing)} missing: {why}.")

    if "bootstrap.servers" not in lines:
        raise InvalidInput(f"{source}: bootstrap.servers is missing.")
    written = lines.get("security.protocol")
    protocol = written.value if written else DEFAULTS["security.protocol"]
    _refuse_idle(lines, protocol)
    if "sasl" in protocol:
        need(_LOGIN, f"security.protocol={protocol} needs {', '.join(_LOGIN)}")
    forms = {name: _one_form(lines, f"ssl.{name}") for name in ("ca", "certificate", "key")}
    if forms["certificate"] and not forms["key"]:
        need(("ssl.key.location",), f"{forms['certificate']} needs it")
    if not forms["certificate"] and (forms["key"] or "ssl.key.password" in lines):
        need(("ssl.certificate.location",), "the key is of no use without it")


def _refuse_idle(lines: Mapping[str, Line], protocol: str) -> None:
    for name, line in lines.items():
        layer = SETTINGS[name].layer
        if layer is not None and layer not in protocol.split("_"):
            raise InvalidInput(
                f"{line.place}: {name} has no effect with security.protocol={protocol}.",
                f"Remove it, or set the security.protocol that uses {layer.upper()}.",
            )


def _one_form(lines: Mapping[str, Line], name: str) -> str | None:
    """The name by which a file's path or its text is set; both would contradict each other."""
    file, text = f"{name}.location", f"{name}.pem"
    if file in lines and text in lines:
        raise InvalidInput(f"{lines[text].place}: {text} says again what {file} says.")
    return next((form for form in (file, text) if form in lines), None)
