"""Records of translation: a text and its translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regard.data.records.record import ColumnMap, Record, Role
from regard.data.rows import Row

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


@dataclass(frozen=True, slots=True)
class TranslateRecord(Record):
    """A text and its translation: two columns, or one column with an object such as {"en": "…", "de": "…"}."""

    type_name = "translate"
    roles = (
        Role("translation", ("translation",)),
        Role("source", ("source", "src")),
        Role("target", ("target", "tgt")),
    )
    required = (("translation",), ("source", "target"))
    explicit = (*Record.explicit, "source", "target")
    text_fields = ("source", "target")
    input_fields = ("source",)

    source: str
    target: str

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> TranslateRecord:
        outer = columns.get("translation")
        source, target = columns["source"], columns["target"]
        texts = row
        if outer is not None:
            texts = _inner_row(row, outer, source, target)
            source, target = f"{outer}.{source}", f"{outer}.{target}"
        return cls(texts.text(source), texts.text(target), group=columns.group(row), place=row.place)

    @classmethod
    def infer_roles(
        cls, columns: Mapping[str, str], roles: Mapping[str, str], named: Mapping[str, str]
    ) -> dict[str, str]:
        """Two columns named by languages."""
        if len(columns) == 2 and set(columns) <= LANGUAGES:
            source, target = columns.values()
            return {"source": source, "target": target}
        return {}

    @property
    def annotation(self) -> str:
        return self.target


def _inner_row(row: Row, outer: str, source: str, target: str) -> Row:
    """A row with the values of the translation object as its columns."""
    translation = row.value(outer)
    if not isinstance(translation, dict):
        expected = f'an object such as {{"{source}": "…", "{target}": "…"}}'
        raise row.place.value_error(translation, column=outer, expected=expected)
    inner = {f"{outer}.{name}": value for name, value in translation.items()}
    return row._replace(values=inner)
