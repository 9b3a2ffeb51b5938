"""Estimators of scikit-learn, checked as check_estimator does it where texts allow."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from regard.errors import InputError
from regard.sklearn import TextClassifier, TextEmbedder, TextRegressor, _columns

SMALL: dict[str, Any] = {"preset": "tiny-bert", "device": "cpu", "settings": {"steps": 30}}
TEXTS = [f"{'red apple' if number % 2 else 'green pear'} number {number % 7}" for number in range(60)]
LABELS = ["fruit" if number % 2 else "pear" for number in range(60)]
ESTIMATORS = [TextClassifier, TextRegressor]


def small(kind: type[Any], **more: Any) -> Any:
    return kind(**{**SMALL, "lr": 2e-3, **more})


@pytest.fixture(scope="module")
def classifier() -> TextClassifier:
    fitted: TextClassifier = small(TextClassifier).fit(TEXTS, LABELS)
    return fitted


@pytest.mark.parametrize("kind", [*ESTIMATORS, TextEmbedder])
def test_constructors_only_store_and_clone_copies(kind: type[Any]) -> None:
    estimator = kind()
    values = {name: object() for name in estimator.get_params()}
    changed = kind(**values)
    assert all(getattr(changed, name) is value for name, value in values.items())
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.set_params(device="cpu").device == "cpu"
    assert repr(estimator).startswith(kind.__name__)


@pytest.mark.parametrize("kind", [*ESTIMATORS, TextEmbedder])
def test_an_estimator_that_is_not_fitted_says_so(kind: type[Any]) -> None:
    with pytest.raises(NotFittedError):
        (kind().transform if kind is TextEmbedder else kind().predict)(["a text"])


def test_kinds_are_known_to_scikit_learn() -> None:
    assert is_classifier(TextClassifier())
    assert is_regressor(TextRegressor())
    assert TextClassifier().__sklearn_tags__().input_tags.string
    assert not TextClassifier().__sklearn_tags__().input_tags.two_d_array


def test_a_classifier_learns_and_its_parameters_stay(classifier: TextClassifier) -> None:
    before = small(TextClassifier).get_params()
    assert classifier.get_params() == before
    assert classifier.classes_.tolist() == ["fruit", "pear"]
    assert classifier.score(TEXTS, LABELS) > 0.9
    chances = classifier.predict_proba(TEXTS[:5])
    assert chances.shape == (5, 2)
    assert np.allclose(chances.sum(1), 1, atol=1e-5)
    assert (classifier.classes_[chances.argmax(1)] == classifier.predict(TEXTS[:5])).all()
    assert classifier.predict([]).shape == (0,)


@pytest.mark.parametrize("convert", [np.array, tuple, lambda texts: np.array(texts, object).reshape(-1, 1)])
def test_texts_may_be_arrays(classifier: TextClassifier, convert: Any) -> None:
    assert (classifier.predict(convert(TEXTS[:6])) == classifier.predict(TEXTS[:6])).all()


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [3.0, 1.0], ["a|b", "c"], ["1", "01"]])
def test_classes_keep_their_type(labels: list[Any]) -> None:
    y = np.array([labels[number % 2] for number in range(60)])
    fitted = small(TextClassifier).set_params(settings={"steps": 1}).fit(TEXTS, y)
    assert fitted.classes_.dtype == y.dtype
    assert set(fitted.predict(TEXTS[:4]).tolist()) <= set(y.tolist())


def test_two_fits_with_one_seed_are_equal_and_a_second_fit_starts_again() -> None:
    first = small(TextClassifier, settings={"steps": 3}).fit(TEXTS, LABELS)
    chances = first.predict_proba(TEXTS[:4])
    again = first.fit(TEXTS, LABELS).predict_proba(TEXTS[:4])
    assert np.array_equal(chances, again)


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy], ids=["pickle", "copy"])
def test_a_pickled_estimator_holds_the_files_of_a_folder(classifier: TextClassifier, copied: Any) -> None:
    other = copied(classifier)
    assert np.array_equal(other.predict_proba(TEXTS[:3]), classifier.predict_proba(TEXTS[:3]))
    assert other.folder_ != classifier.folder_
    state = classifier.__getstate__()
    assert "model_" not in state
    assert all(isinstance(content, bytes) for content in state["folder_files"].values())
    assert {"config.json", "model.safetensors", "run.json", "tokenizer.json"} <= state["folder_files"].keys()
    unfitted = copied(small(TextClassifier))
    assert unfitted.get_params() == small(TextClassifier).get_params()


def test_temporary_folders_are_deleted_with_their_estimator() -> None:
    fitted = small(TextClassifier, settings={"steps": 1}).fit(TEXTS, LABELS)
    folder = Path(fitted.folder_)
    assert folder.is_dir()
    del fitted
    import gc

    gc.collect()
    assert not folder.exists()


def test_several_labels_are_a_matrix() -> None:
    matrix = np.array([[number % 2, number % 3 == 0, 0] for number in range(60)], int)
    matrix[0, 2] = 1
    fitted = small(TextClassifier).fit(TEXTS, matrix)
    assert fitted.predict(TEXTS[:5]).shape == fitted.predict_proba(TEXTS[:5]).shape == (5, 3)
    assert set(np.unique(fitted.predict(TEXTS))) <= {0, 1}


def test_pairs_of_texts() -> None:
    pairs = [(text, "red apple" if number % 4 < 2 else "green pear") for number, text in enumerate(TEXTS)]
    fitted = small(TextClassifier, settings={"steps": 2}).fit(pairs, LABELS)
    assert fitted.model_.task == "pair"
    assert fitted.predict(np.array(pairs[:3])).shape == (3,)


def test_a_regressor_predicts_numbers() -> None:
    numbers = [float(number % 2) for number in range(60)]
    fitted = small(TextRegressor, settings={"steps": 30}).fit(TEXTS, numbers)
    assert fitted.predict(TEXTS[:3]).dtype == np.float64
    assert np.corrcoef(fitted.predict(TEXTS), numbers)[0, 1] > 0
    assert isinstance(fitted.score(TEXTS, numbers), float)


def test_pipelines_searches_and_cross_validation() -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    estimator = make_pipeline(lower, small(TextClassifier, settings={"steps": 3}))
    assert cross_val_score(estimator, TEXTS, LABELS, cv=2).shape == (2,)
    search = GridSearchCV(small(TextClassifier, settings={"steps": 3}), {"lr": [1e-5, 2e-3]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert search.best_params_["lr"] in (1e-5, 2e-3)
    assert len(search.predict(TEXTS[:2])) == 2


@pytest.mark.minilm
def test_vectors_are_the_first_step_of_a_pipeline() -> None:
    embedder = TextEmbedder(device="cpu")
    vectors = embedder.fit_transform(TEXTS[:4])
    assert vectors.shape == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert len(embedder.get_feature_names_out()) == 384
    assert np.array_equal(pickle.loads(pickle.dumps(embedder)).transform(TEXTS[:4]), vectors)
    pipeline = make_pipeline(embedder, LogisticRegression()).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) == 1


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_of_one_or_two_columns(package: str) -> None:
    frames = pytest.importorskip(package, reason=f"{package} is not installed")
    assert _columns(frames.DataFrame({"review": ["a", "b"]})) == {"text": ["a", "b"]}
    assert _columns(frames.Series(["a", "b"])) == {"text": ["a", "b"]}
    assert _columns(frames.DataFrame({"x": ["a", "b"], "y": ["c", "d"]})) == {"first": ["a", "b"], "second": ["c", "d"]}


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", ["a"], "expected a list of texts"),
        ([1, 2], ["a", "b"], "expected texts"),
        ([None, "x"], ["a", "b"], "expected texts"),
        (["x", "y"], ["a", "a"], "one class only"),
        ([["a", "b", "c"], ["a", "b", "c"]], ["a", "b"], "expected texts"),
    ],
)
def test_wrong_texts_are_refused(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(TextClassifier).fit(texts, labels)


def test_other_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small(TextClassifier).fit(["a", "b", "c"], ["x", "y"])
    with pytest.raises(InputError, match="a parameter of its own"):
        small(TextClassifier, settings={"lr": 1}).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="Did you mean"):
        small(TextClassifier, settings={"step": 1}).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match=r'preset is "ngrm", expected a preset or a baseline\. Did you mean "ngram"'):
        TextClassifier(preset="ngrm").fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="It is a pretrained model: give it as start"):
        TextClassifier(preset="minilm").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="continuous"):
        small(TextClassifier).fit(TEXTS, np.linspace(0, 1, 60))
    with pytest.raises(InputError, match="not finite"):
        small(TextRegressor).fit(["a", "b"], [1.0, np.nan])
