"""How tyro parses values of flags and shows their defaults.

Optional values are written as their type, never as None. A wrong number is an error in plain words. The help shows a
default only if it is a value: for None, False and empty lists the help line itself says what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from tyro.conf import arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
    UnsupportedTypeAnnotationError,
)

Spec = PrimitiveConstructorSpec[Any]
NUMBERS: dict[type, tuple[str, str]] = {int: ("INT", "a whole number"), float: ("FLOAT", "a number")}
TRUTHS = {"yes": True, "no": False, "true": True, "false": False}
UNSET = "unset"  # label of the default None
FLAG_PARSERS = ConstructorRegistry()

_resolving: set[Any] = set()  # types whose fields are being read by the next rule


@FLAG_PARSERS.primitive_rule
def number(info: PrimitiveTypeInfo) -> Spec | None:
    """Whole numbers and decimal numbers."""
    if info.type not in NUMBERS:
        return None
    metavar, expected = NUMBERS[info.type]
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=_number_parser(info.type, expected),
        is_instance=lambda value: isinstance(value, info.type | int),  # a whole number is accepted for a float
        str_from_instance=lambda value: [str(value)],
    )


@FLAG_PARSERS.primitive_rule
def yes_or_no(info: PrimitiveTypeInfo) -> Spec | None:
    """Truth values that have no default; others are flags without a value."""
    if info.type is not bool:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{yes,no}",
        instance_from_str=_parse_truth,
        is_instance=lambda value: isinstance(value, bool),
        str_from_instance=lambda value: ["yes" if value else "no"],
    )


@FLAG_PARSERS.primitive_rule
def optional_value(info: PrimitiveTypeInfo) -> Spec | UnsupportedTypeAnnotationError | None:
    """`T | None` is written as a `T`; None is the default."""
    kinds = get_args(info.type)
    if len(kinds) != 2 or NoneType not in kinds:
        return None
    (kind,) = (kind for kind in kinds if kind is not NoneType)
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, info.markers))
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec
    return replace(
        spec,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: [UNSET] if value is None else spec.str_from_instance(value),
    )


@FLAG_PARSERS.struct_rule
def hide_empty_defaults(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a dataclass as tyro's own rule gives them, with `default_hint` for each."""
    if info.type in _resolving:
        return None
    _resolving.add(info.type)
    try:
        spec = ConstructorRegistry.get_struct_spec(info)
    finally:
        _resolving.discard(info.type)
    if not isinstance(spec, StructConstructorSpec):
        return None
    return replace(spec, fields=tuple(replace(field, type=_with_hint(field.type)) for field in spec.fields))


def default_hint(label: str) -> str:
    """What the help says after a line about a default value."""
    return "" if label in ("", UNSET, "False") else f"(default: {label})"


def _with_hint(kind: Any) -> Any:
    hint = arg(help_behavior_hint=default_hint)
    if get_origin(kind) is Annotated:
        plain, *metadata = get_args(kind)
        return Annotated[plain, hint, *metadata]  # what the field itself sets comes later and wins
    return Annotated[kind, hint]


def _parse_truth(words: list[str]) -> bool:
    word = words[0].lower()
    if word not in TRUTHS:
        raise ValueError(f'"{words[0]}" was given, expected yes or no.')
    return TRUTHS[word]


def _number_parser(kind: Callable[[str], Any], expected: str) -> Callable[[list[str]], Any]:
    def parse(words: list[str]) -> Any:
        try:
            return kind(words[0])
        except ValueError as error:
            raise ValueError(f'"{words[0]}" was given, expected {expected}.') from error

    return parse
