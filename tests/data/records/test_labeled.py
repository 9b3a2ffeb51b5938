"""Records with a label: what they are stratified by."""

import pytest

from regard.data.readers import read
from regard.data.records import ClassifyRecord, PairRecord
from regard.data.records.labeled import label_stratum


@pytest.mark.parametrize(("label", "stratum"), [("a", "'a'"), (("b", "a"), "['a', 'b']"), (0.5, 0.5), (None, "None")])
def test_stratum(label, stratum):
    assert label_stratum(label) == stratum
    assert ClassifyRecord("text", label).stratum == PairRecord("one", "two", label).stratum == stratum


def test_a_question_and_a_sentence_are_a_pair(tmp_path):
    (tmp_path / "qnli.tsv").write_text("question\tsentence\tlabel\nWho came?\tAda came.\tentailment\n")
    (record,) = read(tmp_path / "qnli.tsv")
    assert isinstance(record, PairRecord)
    assert (record.first, record.second, record.label) == ("Who came?", "Ada came.", "entailment")
