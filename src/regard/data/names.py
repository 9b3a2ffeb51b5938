"""What columns are usually called, and so what a row is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard.errors import DataError, InputError, did_you_mean, setting

Columns = Mapping[str, str | int | Sequence[str]]  # role -> column, or for label the columns of one-hot labels

# The first name that is there is taken.
COLUMN_ALIASES: dict[str, tuple[str, ...]] = {
    "good": ("sentence_good",),
    "bad": ("sentence_bad",),
    "kind": ("uid",),
    "context": ("context", "passage"),
    "question": ("question", "query"),
    "answers": ("answers", "answer"),
    "tokens": ("tokens", "words"),
    "tags": ("tags", "ner_tags", "labels", "ner", "pos_tags"),
    "entities": ("entities", "spans"),
    "translation": ("translation",),
    "source": ("source", "src"),
    "target": ("target", "tgt"),
    "first": ("sentence1", "premise", "text1", "question1", "sentence_a", "text_a", "first", "#1 string"),
    "second": ("sentence2", "hypothesis", "text2", "question2", "sentence_b", "text_b", "second", "#2 string"),
    "text": ("text", "sentence", "review", "content", "document", "body", "comment", "tweet", "message", "utterance"),
    "label": (
        *("label", "labels", "gold_label", "class", "category", "sentiment", "intent", "topic", "stars", "rating"),
        *("score", "similarity", "relatedness_score", "quality", "is_duplicate", "target"),
    ),
}
CODES = (
    *("ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "ga", "gl", "he", "hi", "hr"),
    *("hu", "id", "is", "it", "ja", "ko", "lt", "lv", "mk", "ms", "mt", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl"),
    *("sq", "sr", "sv", "sw", "th", "tr", "uk", "ur", "vi", "zh"),
)
LANGUAGES = {
    *CODES,
    *("arabic", "chinese", "czech", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi"),
    *("hungarian", "italian", "japanese", "korean", "norwegian", "polish", "portuguese", "romanian", "russian"),
    *("spanish", "swedish", "turkish", "ukrainian"),
}
SCORES = ("score", "similarity", "relatedness_score")
# The roles of a task: the first of these sets that is there, and then what may be there besides. The order is the one
# in which tasks are tried.
NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "minimal": (("good", "bad"),),
    "answer": (("context", "question"),),
    "tag": (("tokens", "tags"), ("text", "entities")),
    "translate": (("translation",), ("source", "target")),
    "pair": (("first", "second"),),
    "classify": (("text", "label"),),
    "text": (("text",),),
}
UNLABELLED = {"tag": (("tokens",),), "classify": (("text",),)}  # only where the task is told
MAYBE = {"minimal": ("kind",), "answer": ("answers",), "pair": ("label",)}
OWN = ("group", "id", "impossible", "start")  # looked for only where they are told
ROLES = (*COLUMN_ALIASES, *OWN, "token", "tag")
TASKS = {**dict.fromkeys(("masked", "causal", "two-sided"), "text"), "embed": "pair", **{task: task for task in NEEDED}}
COLUMNS_HELP = (
    'Say it: --columns text=NAME,label=NAME, by name or by number from 0 (columns={"text": "NAME"} in Python).'
)


def register_task(task: str, record_type: str) -> None:
    """Make known which type of record a task is trained on."""
    TASKS[task] = record_type


def record_type_of_task(given: str) -> str:
    if given not in TASKS:
        raise InputError(f'{setting("task")}: "{given}" is not a task.{did_you_mean(given, TASKS)}')
    return TASKS[given]


def parse_columns(written: str) -> dict[str, str | tuple[str, ...]]:
    """Columns as the command line takes them: text=review,label=stars; several label columns as label=a,b,c."""
    found: dict[str, list[str]] = {}
    last = None
    for part in written.split(","):
        role, equals, name = part.partition("=")
        if not equals and part and last is not None:
            found[last].append(part)
            continue
        if not (role.strip() and equals and name):
            raise InputError(f'{setting("columns")}: "{part}" is not ROLE=NAME. Write text=review,label=stars.')
        last = role.strip()
        found[last] = [name]
    columns = {role: names[0] if len(names) == 1 else tuple(names) for role, names in found.items()}
    check_roles(columns)
    return columns


def check_roles(columns: Columns) -> dict[str, str]:
    """The columns the user named, by role, as strings; several label columns are joined by commas."""
    plural = {"token": "tokens", "tag": "tags"}
    found = {}
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(f'{setting("columns")}: "{role}" is not what a column can be.{did_you_mean(role, ROLES)}')
        several = not isinstance(name, str | int)
        if several and role != "label":
            given = ", ".join(map(str, name)) if isinstance(name, Sequence) else repr(name)
            raise InputError(f"{setting('columns')}: {role} is {given:.80}; only label can have several columns.")
        found[plural.get(role, role)] = ",".join(one_hot_columns(columns)) if several else str(name)
    return found


def one_hot_columns(columns: Columns) -> tuple[str, ...]:
    """The label columns where there are several, one for each label; else none."""
    label = columns.get("label")
    return () if label is None or isinstance(label, str | int) else tuple(str(name) for name in label)


def is_header(cells: Sequence[str], told: Mapping[str, str]) -> bool:
    """Whether a first row names columns: a told or a usual name is in it, or nothing but languages."""
    low = [cell.strip().lower() for cell in cells]
    usual = {name for names in COLUMN_ALIASES.values() for name in names}
    named = any(name in cells and not name.isdigit() for name in told.values())
    return named or any(cell in usual for cell in low) or (len(low) > 1 and set(low) <= LANGUAGES)


def assign_columns(
    names: Sequence[str], told: Mapping[str, str], task: str | None, file: str
) -> tuple[str, dict[str, str]]:
    """The task, and the column of each of its roles."""
    roles = _roles(names, told, file)
    for kind, choices in NEEDED.items():
        if task is not None:
            choices = (*choices, *UNLABELLED.get(kind, ()))
        match = next((choice for choice in choices if set(choice) <= set(roles)), None)
        if task in (None, kind) and match is not None:
            used = {*match, *MAYBE.get(kind, ()), *OWN}
            if kind == "translate":
                used |= {"source", "target"} & set(told)
            if set(told) <= used:
                return kind, {role: name for role, name in roles.items() if role in used}
    wanted = NEEDED[task] if task else NEEDED["classify"]
    raise DataError(
        f"the columns ({', '.join(names[:12]):.200}) do not say what they are" + (f" for {task}" if task else ""),
        file=file,
        expected=" or ".join(", ".join(choice) for choice in wanted),
        fix=COLUMNS_HELP,
    )


def _roles(names: Sequence[str], told: Mapping[str, str], file: str) -> dict[str, str]:
    """Every role some column has: as told, else by its usual name."""
    nested = next((name for name in names if name.lower() in COLUMN_ALIASES["translation"]), None)
    inner = {"source", "target"} if nested is not None else set()
    roles = {role: name if role in inner else find_column(role, name, names, file) for role, name in told.items()}
    low = {name.strip().lower(): name for name in reversed(names) if name not in roles.values()}
    for role, usual in COLUMN_ALIASES.items():
        found = next((low[name] for name in usual if name in low), None)
        if found is not None:
            roles.setdefault(role, found)
    if "question" in low and "sentence" in low and "context" not in roles:
        roles = {"first": low["question"], "second": low["sentence"], **roles}
    if len(names) == 2 and {name.strip().lower() for name in names} <= LANGUAGES:
        roles = {"source": names[0], "target": names[1], **roles}
    return roles


def find_column(role: str, name: str, names: Sequence[str], file: str) -> str:
    if name in names:
        return name
    if name.isdigit() and int(name) < len(names):
        return names[int(name)]
    near = did_you_mean(name, names).strip()
    raise DataError(f'there is no column "{name}" to be the {role}', file=file, fix=near)
