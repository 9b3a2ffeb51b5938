"""The scores of a cross-validation are in the files of the model that was trained on all rows."""

from __future__ import annotations

from pathlib import Path

import regard
from regard import samples


def test_the_report_and_the_card_have_the_scores_of_the_folds(tmp_path: Path) -> None:
    rows = samples.path("messages")
    result = regard.cross_validate(rows, folds=3, preset="ngram", out=tmp_path / "run")
    value = f"{result.scores['accuracy'].value:.4f}"
    for name in ("README.md", "report.html"):
        content = (tmp_path / "run" / name).read_text(encoding="utf-8")
        assert value in content
        assert "456 rows by cross-validation: each by a model that was trained on the other 2 folds" in content
    assert regard.load(tmp_path / "run").predict(["My parcel is late."])
