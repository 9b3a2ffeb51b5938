"""BLEU and chrF of translations, as sacreBLEU computes them (Post 2018), with its signatures."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from regard.metrics.confidence import Replicates, Score, Statistic, Sums, require_rows
from regard.metrics.paired.rows import RowScore, RowTable, joined
from regard.metrics.registry import CustomScores


@cache
def _metrics() -> dict[str, Any]:
    """Imported when a translation is first scored."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return {"bleu": BLEU(force=True), "chrf": CHRF(), "bleu_lowercase": BLEU(force=True, lowercase=True)}


def signatures() -> dict[str, str]:
    """sacreBLEU's signature of each score: version, tokenization, smoothing."""
    result = {}
    for name, metric in _metrics().items():
        metric.num_refs = 1
        result[name] = str(metric.get_signature())
    return result


class TranslationMeter:
    """Corpus BLEU, chrF and BLEU of lower-cased texts, from 0 to 100.

    BLEU (Papineni et al. 2002) is the geometric mean of the precisions of 1- to 4-grams, times a penalty for short
    translations. chrF (Popović 2015) is the F-score of character n-grams. All come from counts that add up over rows.
    Scores published for Multi30k are of lower-cased, tokenized texts: `bleu_lowercase` is comparable with them.
    """

    main, higher_is_better = "bleu", True

    def __init__(self, *, seed: int = 0) -> None:
        self._cuts, width_so_far = {}, 0
        for name, metric in _metrics().items():
            width = len(metric._extract_corpus_statistics(["a"], [["a"]])[0])
            self._cuts[name] = slice(width_so_far, width_so_far + width)
            width_so_far += width
        self._replicates = Replicates(width_so_far, seed=seed)
        self._custom = CustomScores("translation", seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, predicted: str, gold: str) -> None:
        counts: list[float] = []
        for metric in _metrics().values():
            counts += metric._extract_corpus_statistics([predicted], [[gold]])[0]
        self._replicates.add(counts)
        self._custom.add(predicted, gold)

    def keep_rows(self) -> None:
        self._replicates.keep_rows()
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        scores = {
            name: RowScore(tuple(range(cut.start, cut.stop)), _statistic(name), limits=(0.0, 100.0))
            for name, cut in self._cuts.items()
        }
        return joined([RowTable(self._replicates.all_rows(), scores), *self._custom.row_tables()])

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        scores = self._replicates.scores(**{name: self._statistic(name) for name in self._cuts})
        return scores | self._custom.scores()

    def _statistic(self, name: str) -> Statistic:
        of_counts, cut = _statistic(name), self._cuts[name]
        return lambda sums: of_counts(sums[cut])


def _statistic(name: str) -> Statistic:
    """A score from the sums of its own counts."""
    metric = _metrics()[name]

    def score(sums: Sums) -> Any:
        counts = np.rint(sums).astype(int)
        if counts.ndim == 1:
            return metric._compute_score_from_stats(counts.tolist()).score
        return np.array([metric._compute_score_from_stats(one).score for one in counts.T.tolist()])

    return score
