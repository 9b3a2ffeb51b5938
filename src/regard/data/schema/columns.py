"""Which column has which role, and so which record type the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard.data.records import all_roles, column_aliases, record_type_names, record_types
from regard.data.records.translation import LANGUAGES
from regard.errors import DataError, InputError, did_you_mean, setting

Columns = Mapping[str, str | int | Sequence[str]]  # role -> column; label may have several columns (one-hot labels)

SINGULAR = {"token": "tokens", "tag": "tags"}  # role names that users write in the singular


def columns_help(task: str | None) -> str:
    """How a user names the columns that a record type needs."""
    roles = record_types()[task or "classify"].required[0]
    named = ",".join(f"{role}=NAME" for role in roles)
    in_python = f'(columns={{"{roles[0]}": "NAME"}} in Python)'
    pairs = " For pairs of texts: --columns first=NAME,second=NAME,label=NAME." if task is None else ""
    return f"Name the columns: --columns {named}, by name or by number from 0 {in_python}.{pairs}"


def record_type_of_task(task: str) -> str:
    """The name of the record type that a task reads."""
    names = record_type_names()
    if task not in names:
        raise InputError(f'{setting("task")}: "{task}" is not a task.{did_you_mean(task, names)}')
    return names[task]


def parse_columns(argument: str) -> dict[str, str | tuple[str, ...]]:
    """Parse the command-line argument text=review,label=stars; several label columns are label=a,b,c."""
    names: dict[str, list[str]] = {}
    role = None
    for part in argument.split(","):
        key, equals, name = part.partition("=")
        if not equals and part and role is not None:
            names[role].append(part)
            continue
        if not (key.strip() and equals and name):
            raise InputError(f'{setting("columns")}: "{part}" is not ROLE=NAME. Write text=review,label=stars.')
        role = key.strip()
        names[role] = [name]
    columns = {role: several[0] if len(several) == 1 else tuple(several) for role, several in names.items()}
    check_roles(columns)
    return columns


def check_roles(columns: Columns) -> dict[str, str]:
    """The columns named by the user, by role, as strings; several label columns are joined by commas."""
    roles = (*all_roles(), *SINGULAR)
    checked = {}
    for role, name in columns.items():
        if role not in roles:
            raise InputError(f'{setting("columns")}: "{role}" is not a column role.{did_you_mean(role, roles)}')
        several = not isinstance(name, str | int)
        if several and role != "label":
            names = ", ".join(map(str, name)) if isinstance(name, Sequence) else repr(name)
            raise InputError(f"{setting('columns')}: {role} is {names:.80}; only label can have several columns.")
        checked[SINGULAR.get(role, role)] = ",".join(one_hot_columns(columns)) if several else str(name)
    return checked


def one_hot_columns(columns: Columns) -> tuple[str, ...]:
    """The label columns if there are several, one for each label; else none."""
    label = columns.get("label")
    return () if label is None or isinstance(label, str | int) else tuple(str(name) for name in label)


def is_header(cells: Sequence[str], named: Mapping[str, str]) -> bool:
    """Whether a first row names columns: it contains a name given by the user or a known alias, or only languages."""
    if any(name in cells and not name.isdigit() for name in named.values()):
        return True
    names = [cell.strip().lower() for cell in cells]
    aliases = {alias for role in column_aliases().values() for alias in role}
    return any(name in aliases for name in names) or (len(names) > 1 and set(names) <= LANGUAGES)


def assign_columns(
    names: Sequence[str], named: Mapping[str, str], task: str | None, file: str, *, labeled: bool = False
) -> tuple[str, dict[str, str]]:
    """The record type and the column of each of its roles.

    names: every column. named: the columns that the user has named, by role. task: the record type, if known. labeled:
    whether the user has said how labels are written.
    """
    roles = _column_roles(names, named, file)
    for name, record_type in record_types().items():
        if task not in (None, name):
            continue
        alternatives = record_type.required
        if task is not None:
            alternatives = (*alternatives, *record_type.required_unlabeled)
        match = next((one for one in alternatives if set(one) <= set(roles)), None)
        if match is None:
            continue
        used = {*match, *record_type.optional, *(set(record_type.explicit) & set(named))}
        if set(named) <= used:
            return name, {role: column for role, column in roles.items() if role in used}
    likely = _likely_type(roles, named, labeled=labeled) if task is None else None
    if likely is not None:
        needed = record_types()[likely].required[0]
        missing = " and ".join(role for role in needed if role not in roles)
        known = ", ".join(f"{role} is {column}" for role, column in roles.items() if role in needed)
        words = f"no column for {missing} was recognized among {', '.join(names[:12]):.200} ({known})"
        raise DataError(words, file=file, fix=columns_help(likely))
    raise DataError(_no_match(names, named, task), file=file, fix=columns_help(task))


def _likely_type(roles: Mapping[str, str], named: Mapping[str, str], *, labeled: bool) -> str | None:
    """The record type that needs at least one of these roles, and takes most of them and all that the user has named.

    None if there is no such type that still needs another role.
    """
    best, most = None, 0
    for name, record_type in record_types().items():
        needed = set(record_type.required[0])
        used = needed | set(record_type.optional) | set(record_type.explicit)
        count = len(used & set(roles)) if not labeled or "label" in used else 0
        if count > most and needed & set(roles) and needed - set(roles) and set(named) <= used:
            best, most = name, count
    return best


def _no_match(names: Sequence[str], named: Mapping[str, str], task: str | None) -> str:
    """What is missing among the columns, as a message."""
    required = " or ".join(" and ".join(one) for one in record_types()[task or "classify"].required)
    for_task = "" if task is None else f" (task {task})"
    also = f" in addition to {', '.join(named)}" if named else ""
    return f"no columns for {required}{for_task} were recognized{also} among {', '.join(names[:12]):.200}"


def _column_roles(names: Sequence[str], named: Mapping[str, str], file: str) -> dict[str, str]:
    """The column of every role: as given by the user, else by alias or by a combination of columns."""
    aliases = column_aliases()
    nested = any(name.lower() in aliases["translation"] for name in names)
    inside = {"source", "target"} if nested else set()  # then these are keys of the translation object
    roles = {role: name if role in inside else find_column(role, name, names, file) for role, name in named.items()}
    free = {name.strip().lower(): name for name in reversed(names) if name not in roles.values()}
    by_user = dict(roles)
    for role, known in aliases.items():
        column = next((free[alias] for alias in known if alias in free), None)
        if column is not None:
            roles.setdefault(role, column)
    every = {name.strip().lower(): name for name in names}
    for record_type in record_types().values():
        roles = {**record_type.infer_roles(every, roles, by_user), **roles}
    return roles


def find_column(role: str, name: str, names: Sequence[str], file: str) -> str:
    """The column that the user has named, by name or by number."""
    if name in names:
        return name
    if name.isdigit() and int(name) < len(names):
        return names[int(name)]
    raise DataError(
        f'there is no column "{name}" for the role {role}', file=file, fix=did_you_mean(name, names).strip()
    )
