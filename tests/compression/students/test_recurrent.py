"""Recurrent students of a Transformer."""

from __future__ import annotations

import pytest
import torch
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.compression.students.recurrent import STD, recurrent_student, token_vectors
from regard.compression.teacher import Teacher
from regard.config import RecurrentConfig
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.ragged import Ragged


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_student_has_the_labels_and_the_tokens_of_its_teacher(teacher: Teacher, cell: str) -> None:
    before = teacher.model.config.vocabulary
    texts = ["great soup", "dull room"]
    student, tokenizer = recurrent_student(
        teacher.model.checkpoint, teacher.model.require_tokenizer(), texts, cell=cell, width=8
    )
    assert isinstance(student.config, RecurrentConfig)
    assert (student.config.cell, student.config.width, student.config.vocabulary) == (cell, 16, tokenizer.size)
    assert isinstance(student.network, BidirectionalNetwork)
    assert student.labels == teacher.model.checkpoint.labels
    logits = student.network(Ragged.of([tokenizer.encode(text).ids for text in texts])).logits
    assert logits is not None
    assert logits.shape == (2, 2)
    assert teacher.model.config.vocabulary == before  # it is left as it was


def test_heads_of_tokens() -> None:
    checkpoint = random_checkpoint("tiny-roberta", {"token": 5})
    student, _ = recurrent_student(checkpoint, word_tokenizer(special=True), [], cell="gru", width=8)
    assert student.network(Ragged.of([[5, 6, 7], [8]])).logits.shape == (4, 5)


def test_token_vectors_keep_distances() -> None:
    torch.manual_seed(0)
    table = torch.randn(50, 4) @ torch.randn(4, 32)
    vectors = token_vectors(table, 6)
    assert vectors.shape == (50, 6)
    assert float(vectors.std()) == pytest.approx(STD)
    near, expected = torch.pdist(vectors), torch.pdist(table)
    assert torch.allclose(near / near.mean(), expected / expected.mean(), atol=1e-4)
    assert token_vectors(table[:, :4], 6).shape == (50, 6)
