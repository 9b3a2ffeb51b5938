"""The structure of the package: names and imports that a reader can follow."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"


@cache
def modules() -> dict[str, ast.Module]:
    results = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("regard", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        results[name] = ast.parse(path.read_text(encoding="utf-8"))
    return results


def test_public_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_no_conditional_expression_is_nested() -> None:
    nested = [
        f"{module}:{node.lineno}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        and any(isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node)
    ]
    assert nested == []


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of regard that are imported when the code runs; imports for type checkers do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() else node.module
        yield from imports(node)


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Imports inside functions count too: a circle is a circle, also when it is imported late."""
    targets = {name: {target for target in imports(tree) if target in modules()} for name, tree in modules().items()}
    targets["regard"] = set()  # it imports its public names on first use
    while True:
        imported = set().union(*targets.values())
        ends = {name for name, rest in targets.items() if not rest or name not in imported}
        if not ends:
            break
        targets = {name: rest - ends for name, rest in targets.items() if name not in ends}
    assert targets == {}
