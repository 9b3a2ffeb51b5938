from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.helpers import add_model, table_of

from regard.errors import FolderError, InputError
from regard.serve.model_table import check_folders, named_sources
from regard.serve.served import Served
from regard.serve.settings import NotReady, UnknownModel


def test_models_have_names() -> None:
    assert named_sources(["runs/reviews", "minilm", "x=runs/reviews"]) == {
        "reviews": "runs/reviews",
        "minilm": "minilm",
        "x": "runs/reviews",
    }


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["a/reviews", "b/reviews"], r'two models are called "reviews".*other-name=b/reviews'),
        (["=minilm"], '"=minilm" has no name'),
        (["small="], '"small=" has no source'),
    ],
)
def test_wrong_names(sources: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        named_sources(sources)


def test_a_folder_without_a_model_is_found_before_others_are_loaded(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_folders({"a": str(trained), "b": "minilm"})
    with pytest.raises(FolderError, match=r"has no config\.json"):
        check_folders({"a": str(trained), "b": str(tmp_path)})
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    for missing in ("runs/nope", "./nope", "a/b/c", str(tmp_path / "nope")):
        with pytest.raises(FolderError, match="does not exist"):
            check_folders({"a": missing})
    check_folders({"a": "owner/name"})  # may be on the hub


def test_a_model_that_is_still_being_loaded_is_not_unknown() -> None:
    with table_of("bert") as table:
        table.sources = {"bert": "a", "gpt2": "b"}
        with pytest.raises(NotReady, match='"gpt2" is still being loaded'):
            table.get("gpt2")
        with pytest.raises(UnknownModel, match=r'no model "gpt3" is loaded\. Did you mean "gpt2"'):
            table.get("gpt3")


def test_the_first_model_is_the_default() -> None:
    with table_of("bert", "gpt2") as table:
        assert table.get(None).name == "bert"
        assert table.get("gpt2").name == "gpt2"
        assert table.ready
        with pytest.raises(UnknownModel, match="gpt2"):
            table.get("gpt3")
    with pytest.raises(NotReady):
        table.submit("bert", "predict", ["a film"])
    assert not table.ready


def test_a_model_that_was_replaced_at_this_moment_loses_no_request() -> None:
    with table_of("bert") as table:
        old = table.get(None)
        old.close(seconds=5)
        with pytest.raises(NotReady):
            table.submit(None, "predict", ["a film"])
        get, calls = table.get, []

        def replaced(name: str | None) -> Served:
            calls.append(name)
            if len(calls) == 1:
                add_model(table, "bert")
                return old
            return get(name)

        table.get = replaced  # type: ignore[method-assign]
        served, futures = table.submit(None, "predict", ["a film"])
        assert served is not old
        assert futures[0].result(10).answer["windows"] == 1
