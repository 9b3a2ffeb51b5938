"""The page at /docs: every route with its fields and an example, from the OpenAPI description, without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>regard routes</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="stylesheet" href="/page/page.css"></head><body><main>'
)


def docs_page(openapi: Mapping[str, Any], url: str) -> str:
    """HTML for an OpenAPI description of the server at `url`."""
    about = "".join(f"<p>{_with_code(part)}</p>" for part in openapi["info"]["description"].split("\n\n"))
    parts = [HEAD, f"<h1>Routes</h1>{about}<p><a href='/openapi.json'>OpenAPI</a> · <a href='/'>try them</a></p>"]
    schemas = openapi.get("components", {}).get("schemas", {})
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(route.get('summary', ''))}</p>")
            content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if name:
                parts.append(_fields(schemas[name], url.rstrip("/") + path))
    return "".join([*parts, "</main></body></html>"])


def _with_code(text: str) -> str:
    """HTML for text with `code` in it."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _fields(schema: Mapping[str, Any], url: str) -> str:
    rows = []
    for name, field in schema["properties"].items():
        default = "" if field.get("default") is None else json.dumps(field["default"])
        if name in schema.get("required", ()):
            default = "required"
        about = _with_code(field.get("description", ""))
        rows.append(
            f"<tr><td>{escape(name)}</td><td>{escape(_kind(field))}</td><td>{escape(default)}</td><td>{about}</td>"
        )
    table = f"<table><tr><th>field</th><th>type</th><th>default</th><th></th></tr>{''.join(rows)}</table>"
    examples = [
        f"<pre>curl {escape(url)} -H 'Content-Type: application/json' -d '{escape(json.dumps(example))}'</pre>"
        for example in schema.get("examples", ())
    ]
    return table + "".join(examples)


def _kind(field: Mapping[str, Any]) -> str:
    """The type of a field in words: "text or list of text"."""
    if "anyOf" in field:
        return " or ".join(_kind(one) for one in field["anyOf"] if one.get("type") != "null") or "null"
    if "enum" in field or "const" in field:
        return " or ".join(json.dumps(value) for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    kind = str(field.get("type", "object"))
    return names.get(kind, kind)
