"""How values of flags are read: one that may be left out never asks for None, and a wrong number is said in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Any, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

Spec = PrimitiveConstructorSpec[Any]
NUMBERS: dict[type, tuple[str, str]] = {int: ("INT", "a whole number"), float: ("FLOAT", "a number")}
FLAG_PARSERS = ConstructorRegistry()


@FLAG_PARSERS.primitive_rule
def number(told: PrimitiveTypeInfo) -> Spec | None:
    """A whole number or any."""
    if told.type not in NUMBERS:
        return None
    metavar, expected = NUMBERS[told.type]
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=_reader(told.type, expected),
        is_instance=lambda value: isinstance(value, told.type | int),  # a whole number is a number too
        str_from_instance=lambda value: [str(value)],
    )


@FLAG_PARSERS.primitive_rule
def optional_value(told: PrimitiveTypeInfo) -> Spec | UnsupportedTypeAnnotationError | None:
    """What may be left out is written as what it is."""
    kinds = get_args(told.type)
    if len(kinds) != 2 or NoneType not in kinds:
        return None
    (kind,) = (kind for kind in kinds if kind is not NoneType)
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, told.markers))
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec
    return replace(
        spec,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["unset"] if value is None else spec.str_from_instance(value),
    )


def _reader(kind: Callable[[str], Any], expected: str) -> Callable[[list[str]], Any]:
    def read(words: list[str]) -> Any:
        try:
            return kind(words[0])
        except ValueError as error:
            raise ValueError(f'"{words[0]}" was given, expected {expected}.') from error

    return read
