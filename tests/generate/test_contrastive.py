"""Contrastive search against the obvious way to do it."""

import pytest
import torch
from torch.nn import functional as F

from regard.ragged import Ragged


def obvious(model, prompt, *, alpha, k, tokens):
    network, special = model.network, model.writer.special
    both = network.encoder is not None
    ids = [special.decoder_start] if both else list(prompt)
    start = len(ids)

    def run(ids):
        output = network(Ragged.of([prompt]), Ragged.of([ids])) if both else network(Ragged.of([ids]))
        return output.hidden, output.logits[-1]

    while len(ids) - start < tokens:
        hidden, logits = run(ids)
        if special.forced_last is not None and len(ids) - start == tokens - 1:
            ids.append(special.forced_last)
            break
        chances, words = logits.softmax(-1).topk(k)
        scores = []
        for chance, word in zip(chances, words.tolist(), strict=True):
            state = run([*ids, word])[0][-1]
            scores.append((1 - alpha) * chance - alpha * F.cosine_similarity(state, hidden).max())
        ids.append(int(words[torch.stack(scores).argmax()]))
        if ids[-1] in special.eos:
            break
    return ids[start:]


@pytest.mark.parametrize(("alpha", "k"), [(0.6, 4), (0.3, 7)])
@torch.no_grad()
def test_contrastive_search_is_the_obvious_one(both, prompts, alpha, k):
    _, model = both
    expected = [obvious(model, prompt, alpha=alpha, k=k, tokens=12) for prompt in prompts]
    assert model.generate_ids(prompts, max_tokens=12, contrast=alpha, top_k=k) == expected


def test_one_candidate_is_greedy(decoder, prompts):
    _, model = decoder
    plain = model.continuations(prompts, max_tokens=12)
    result = model.continuations(prompts, max_tokens=12, contrast=0.5, top_k=1)
    assert [rows[0].ids for rows in result] == [rows[0].ids for rows in plain]
    assert result[0][0].log_probs == pytest.approx(plain[0][0].log_probs, abs=1e-4)
