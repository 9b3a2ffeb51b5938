"""The tests are honest: equal models are rarely called different, and intervals hold the truth as often as they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics.confidence import with_ones
from regard.metrics.label_meters import LabelMeter
from regard.metrics.number_meters import NumberMeter
from regard.metrics.paired.resample import bootstrap_scores
from regard.metrics.paired.rows import RowScore, RowTable
from regard.metrics.paired.significance import ALPHA, compare_pair, holm, power_of, units_needed
from regard.metrics.translation import TranslationMeter

RESAMPLES = 1000


def right(values: np.ndarray) -> RowTable:
    return RowTable(with_ones(values), {"accuracy": RowScore((0, 1))})


def labels(predicted: np.ndarray, gold: np.ndarray) -> RowTable:
    meter = LabelMeter(["a", "b"])
    meter.keep_rows()
    meter.add_many(predicted, gold)
    return meter.row_table()


def two_models(
    generator: np.random.Generator, rows: int, *, gain: float = 0.0, disagreement: float = 0.08
) -> tuple[np.ndarray, np.ndarray]:
    """Whether two models are right: they agree on most rows; the first is right on `gain` more of all rows."""
    both = generator.random(rows) < 0.85
    kind = generator.random(rows)
    only_first = kind < (disagreement + gain) / 2
    only_second = (kind >= (disagreement + gain) / 2) & (kind < disagreement)
    first = np.where(only_first, True, np.where(only_second, False, both))
    second = np.where(only_first, False, np.where(only_second, True, both))
    return first.astype(float), second.astype(float)


def is_different(tables: Sequence[RowTable], name: str, groups: np.ndarray | None = None) -> bool:
    test = compare_pair(tables[:1], tables[1:], name, groups=groups, resamples=RESAMPLES)
    return test.p <= ALPHA and not test.difference.low <= 0 <= test.difference.high


def test_equal_models_are_called_different_in_at_most_5_percent_of_200_comparisons() -> None:
    generator = np.random.default_rng(0)
    calls = [is_different([right(part) for part in two_models(generator, 500)], "accuracy") for _ in range(200)]
    assert np.mean(calls) <= 0.05


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_equal_models_by_f1_and_mcc(name: str) -> None:
    generator = np.random.default_rng(1)
    calls = []
    for _ in range(200):
        gold = generator.integers(0, 2, 300)
        first, second = (np.where(part > 0, gold, 1 - gold) for part in two_models(generator, 300))
        calls.append(is_different([labels(first, gold), labels(second, gold)], name))
    assert np.mean(calls) <= 0.05


def test_equal_models_on_groups_of_rows() -> None:
    """Rows of a group succeed or fail together; without groups, equal models would often be called different."""
    generator = np.random.default_rng(2)
    groups = np.repeat(np.arange(80), 10)
    calls, naive = [], []
    for _ in range(500):
        tables = [right(np.repeat(part, 10)) for part in two_models(generator, 80, disagreement=0.3)]
        calls.append(is_different(tables, "accuracy", groups))
        naive.append(is_different(tables, "accuracy"))
    assert np.mean(calls) <= 0.05
    assert np.mean(naive) > 0.3


def test_a_planted_difference_is_shown_as_often_as_the_formula_says() -> None:
    """1 point at 2,000 rows, with models that disagree on 3 % of the rows."""
    generator = np.random.default_rng(3)
    shown = [
        is_different([right(part) for part in two_models(generator, 2000, gain=0.01, disagreement=0.03)], "accuracy")
        for _ in range(300)
    ]
    expected = power_of(0.01, np.sqrt(0.03), 2000, discrete=True)
    assert 0.6 < expected < 0.8
    assert np.mean(shown) == pytest.approx(expected, abs=0.07)  # 2.5 standard errors


def test_the_number_of_rows_needed_gives_the_power() -> None:
    for discrete in (False, True):
        units = units_needed(0.02, 0.4, discrete=discrete)
        assert units is not None
        assert power_of(0.02, 0.4, units, discrete=discrete) >= 0.8 > power_of(0.02, 0.4, units - 1, discrete=discrete)
    assert units_needed(0.02, 0.4) == pytest.approx(((1.96 + 0.8416) * 0.4 / 0.02) ** 2, rel=0.001)
    assert units_needed(0.0, 0.4) is None
    assert units_needed(0.02, 0.4, seed_error=0.05) is None  # more rows do not help against seeds


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_intervals_of_a_difference_hold_the_truth(grouped: bool) -> None:
    generator = np.random.default_rng(4)
    inside = []
    for _ in range(500):
        first, second = two_models(generator, 200, gain=0.05, disagreement=0.25)
        tables, groups = [right(first), right(second)], None
        if grouped:
            sizes = generator.integers(1, 6, 200)
            groups = np.repeat(np.arange(200), sizes)
            tables = [right(np.repeat(part, sizes)) for part in (first, second)]
        interval = compare_pair(tables[:1], tables[1:], "accuracy", groups=groups, resamples=RESAMPLES).difference
        inside.append(interval.low <= 0.05 <= interval.high)
    assert 0.93 <= np.mean(inside) <= 0.97


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_intervals_of_correlations_hold_the_truth(name: str) -> None:
    """Two models with the same correlation: the difference is 0."""
    generator = np.random.default_rng(5)
    inside = []
    for _ in range(500):
        gold, shared = generator.normal(size=(2, 150))
        tables = []
        for _ in range(2):
            meter = NumberMeter()
            meter.keep_rows()
            meter.add_many(gold + 0.5 * shared + 0.5 * generator.normal(size=150), gold)
            tables.append(meter.row_table())
        interval = compare_pair(tables[:1], tables[1:], name, resamples=500).difference
        inside.append(interval.low <= 0 <= interval.high)
    assert 0.93 <= np.mean(inside) <= 0.97


def test_seeds_are_a_source_of_variance() -> None:
    """Models that differ only by their seeds: with the variance of seeds, few are called different."""
    generator = np.random.default_rng(6)
    calls, naive = [], []
    for _ in range(100):
        tables = [
            [right((generator.random(2000) < 0.85 + 0.02 * generator.normal()).astype(float)) for _ in range(3)]
            for _ in range(2)
        ]
        test = compare_pair(tables[0], tables[1], "accuracy", resamples=RESAMPLES)
        calls.append(test.p <= ALPHA)
        naive.append(compare_pair(tables[0][:1], tables[1][:1], "accuracy", resamples=RESAMPLES).p <= ALPHA)
        assert test.p_mcnemar is None
        assert test.seed_error > 0
    assert np.mean(calls) <= 0.06
    assert np.mean(naive) > 0.2


def test_the_variance_between_seeds_is_assumed_for_models_that_were_trained_once() -> None:
    """Equal models with the gain that seeds were measured to give: at most 5 % are called different."""
    generator = np.random.default_rng(11)
    assumed, naive, wider = [], [], []
    for _ in range(300):
        gain = 0.0031 * generator.normal()  # of a network on AG News
        tables = [right(values) for values in two_models(generator, 1500, gain=gain, disagreement=0.062)]
        one, other = (
            compare_pair(tables[:1], tables[1:], "accuracy", resamples=RESAMPLES, varying=varying) for varying in (2, 0)
        )
        assumed.append(one.p <= ALPHA)
        naive.append(other.p <= ALPHA)
        assert one.seed_error == pytest.approx(one.error * np.sqrt(3e-4 * 1500))
        assert other.seed_error == 0
        wider.append((one.difference.high - one.difference.low) / (other.difference.high - other.difference.low))
    assert np.mean(assumed) <= 0.05
    assert np.mean(naive) >= np.mean(assumed)
    assert np.mean(wider) == pytest.approx(np.sqrt(1.45), rel=0.03)


def test_mcnemar_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = two_models(np.random.default_rng(7), 400, gain=0.04, disagreement=0.1)
    test = compare_pair([right(first)], [right(second)], "accuracy", resamples=RESAMPLES)
    only = int(((first > 0) & (second == 0)).sum()), int(((second > 0) & (first == 0)).sum())
    assert test.p_mcnemar == pytest.approx(stats.binomtest(only[0], sum(only)).pvalue)


def test_mcnemar_is_that_of_statsmodels() -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    first, second = two_models(np.random.default_rng(7), 400, gain=0.04, disagreement=0.1)
    test = compare_pair([right(first)], [right(second)], "accuracy", resamples=RESAMPLES)
    cells = [[((first == a) & (second == b)).sum() for b in (1, 0)] for a in (1, 0)]
    assert test.p_mcnemar == pytest.approx(tables.mcnemar(cells, exact=True).pvalue)


def translations(loss: float) -> tuple[list[str], list[list[str]], list[RowTable]]:
    """References, two systems, and their rows: the second system loses this fraction of the words."""
    generator = np.random.default_rng(8)
    words = ["the", "small", "red", "house", "stands", "on", "green", "hill", "near", "old", "river"]
    references = [" ".join(generator.choice(words, 12)) for _ in range(60)]
    systems = [
        [" ".join(word for word in text.split() if generator.random() > part) for text in references]
        for part in (0.1, loss)
    ]
    tables = []
    for system in systems:
        meter = TranslationMeter()
        meter.keep_rows()
        for ours, gold in zip(system, references, strict=True):
            meter.add(ours, gold)
        tables.append(meter.row_table())
    return references, systems, tables


@pytest.mark.parametrize("loss", [0.1, 0.13, 0.2])
@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_paired_tests_of_sacrebleu(kind: str, loss: float) -> None:
    metrics = pytest.importorskip("sacrebleu.metrics")
    significance = pytest.importorskip("sacrebleu.significance")
    references, systems, tables = translations(loss)
    named = list(zip(("first", "second"), systems, strict=True))
    paired = significance.PairedTest(
        named, {"BLEU": metrics.BLEU(force=True, references=[references])}, None, kind, 2000
    )
    _, results = paired()
    reference = results["BLEU"][1]
    ours = compare_pair(tables[:1], tables[1:], "bleu", resamples=4000)
    assert tables[1].value("bleu") == pytest.approx(reference.score)
    if kind == "ar":
        assert ours.p_randomization == pytest.approx(reference.p_value, abs=0.03)
        return
    first, second = bootstrap_scores(tables, "bleu", resamples=4000)
    sizes = np.abs(first - second)  # sacreBLEU's p is one-sided, of the absolute differences around their mean
    p = (sizes - sizes.mean() > abs(tables[0].value("bleu") - tables[1].value("bleu"))).mean()
    assert p == pytest.approx(reference.p_value, abs=0.03)
    assert (ours.p_bootstrap < 0.05) == (reference.p_value < 0.05)


def test_holm_is_that_of_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    values = [0.01, 0.04, 0.03, 0.005, 0.5]
    assert holm(values) == pytest.approx(multitest.multipletests(values, method="holm")[1])


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_other_rows_are_an_error() -> None:
    with pytest.raises(InputError, match="expected the same rows"):
        compare_pair([right(np.ones(3))], [right(np.ones(4))], "accuracy")


def test_equal_answers_have_no_difference() -> None:
    test = compare_pair([right(np.ones(50))], [right(np.ones(50))], "accuracy", resamples=100)
    assert test.p == 1.0
    assert test.difference.low == test.difference.high == 0.0
    assert test.rows_needed() is None
