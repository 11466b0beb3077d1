"""The templates of the pages: one file each, with embedded style and script; it loads nothing."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from quota_ops.report.outline.formats import escape_text

_SCRIPTS = ("page.js", "fleet.js")


def rendered(
    template: str,
    weights: Mapping[str, int],
    *,
    styles: Sequence[str] = ("page.css",),
    script: str = "page.js",
    **values: Any,
) -> str:
    """Return a template rendered with values; every value is escaped for HTML.

    `styles` and `script` are files beside it. `weights` are the lengths of the bars' parts, by CSS
    selector. The content security policy of the page has the hashes of style and script, so that
    nothing else can run.
    """
    lengths = "".join(f"{part}{{flex-grow:{weight}}}" for part, weight in weights.items())
    style, code = "".join(map(_file, styles)) + lengths, _read_script(script)
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(code),  # noqa: S704 - our own file
            style_hash=_hash(style),
            script_hash=_hash(code),
            **values,
        )
    )


@cache
def describe_policy() -> str:
    """Return the content security policy for a web server that shows pages from a run store.

    Only the scripts of quota-ops may run, even in a page that somebody else put into the store.
    """
    scripts = " ".join(f"'{_hash(_read_script(name))}'" for name in _SCRIPTS)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


NOW = "<!-- now -->"
"""Where a web server may insert the output of `rendered_part` into a page."""


def rendered_part(template: str, **values: Any) -> str:
    """Return a template of a part of a page; every value is escaped for HTML."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    def harmless(value: object) -> object:
        return escape_text(value) if isinstance(value, str) and type(value) is not Markup else value

    return Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        finalize=harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _file(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _read_script(name: str) -> str:
    return _file("airflow.js") + _file(name)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
