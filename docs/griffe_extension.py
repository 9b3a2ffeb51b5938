"""Shows parameters and fields as tables in the API reference.

A docstring describes a parameter in a line `name: description`; indented lines continue it. A field of a class is
described in the same way, or by a comment in its line. mkdocstrings expects such lines under `Args:` or `Attributes:`.
"""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from typing import Any

from griffe import Attribute, Class, Docstring, Extension, Function

NO_DESCRIPTION = "&nbsp;"
DESCRIPTION = re.compile(r"(\w+): \S")


class DocstringTables(Extension):
    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        names = {parameter.name for parameter in func.parameters}
        if func.docstring is not None:
            func.docstring.value = with_section(func.docstring.value, "Args:", names)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        if cls.docstring is None or "TypedDict" in map(str, cls.bases):
            return
        fields = {name: field for name, field in cls.attributes.items() if is_public_field(field)}
        text = with_section(cls.docstring.value, "Attributes:", set(fields))
        if fields and text == cls.docstring.value:
            lines = [f"    {name}: {comment_of(field) or NO_DESCRIPTION}" for name, field in fields.items()]
            text = "\n".join([text.rstrip(), "", "Attributes:", *lines])
        cls.docstring = Docstring(text, lineno=cls.docstring.lineno, parent=cls)


def is_public_field(attribute: Attribute) -> bool:
    """Whether this is a field of a class that users may read: annotated, not a property, not internal."""
    is_field = attribute.annotation is not None and "property" not in attribute.labels
    return is_field and attribute.is_public and not str(attribute.value).startswith("internal(")


def with_section(docstring: str, heading: str, names: set[str]) -> str:
    """The docstring with the heading before lines that describe one of the names, and these lines indented."""
    lines: list[str] = []
    inside = False
    for line in docstring.splitlines():
        match = DESCRIPTION.match(line)
        starts = match is not None and match[1] in names
        if starts and not inside:
            lines += ["", heading]
        inside = starts or (inside and line.startswith(" "))
        lines.append(f"    {line}" if inside else line)
    return "\n".join(lines)


def comment_of(field: Attribute) -> str:
    """The comment in the lines of a field; empty if there is none."""
    source = textwrap.dedent("\n".join(field.lines))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return " ".join(token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)
