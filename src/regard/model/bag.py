"""A network without attention or order: a text is a set of features, each with a row of a table.

The vector of a text is the mean of its rows (static embeddings), or their sum weighted as in tf-idf (n-grams, where a
row has one number per class, and the classification head adds the bias). Words are classified from the rows of their
own features and of those of their neighbors.

Shapes: N tokens, B sequences, W words, D width of a row, F features of a word, C classes, P sets of word or character
n-grams of a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import BagConfig
from regard.errors import InputError, did_you_mean
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.linear import Linear
from regard.model.transformer import Output
from regard.ragged import Ragged

HEADS = ("sequence", "token")
SIMILARITIES = 2  # of the two texts of a pair: cosine of word and of character n-grams
SIDES = 3  # parts of the table for pairs: features of the first text only, of the second only, of both


class BagEncoder(nn.Module):
    """The table, and for tf-idf the weight of each feature."""

    depth = 0  # layers after the table

    def __init__(self, config: BagConfig) -> None:
        super().__init__()
        self.config = config
        tfidf = config.weighting == "tfidf"
        rows = config.vocabulary * (SIDES if tfidf and config.pair else 1)
        self.tokens = nn.Embedding(rows, config.width)
        self.idf = nn.Parameter(torch.ones(config.vocabulary)) if tfidf else None

    def forward(self, batch: Ragged, *, layers: int | None = None) -> Tensor:
        """(N, D) the row of each feature."""
        rows_ND: Tensor = self.tokens(batch.ids)
        return rows_ND

    def pooled(self, batch: Ragged) -> Tensor:
        """(B, D) the vector of each text; of pairs what describes both texts."""
        if self.idf is not None:
            return self._tfidf_pair(batch) if self.config.pair else self._tfidf(batch)
        if not self.config.pair:
            return self._mean(batch.ids, batch.bounds[:-1])
        return self._mean_pair(batch)

    def _mean(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        table = self.tokens
        return F.embedding_bag(ids_N, table.weight, starts_B.long(), mode="mean", sparse=table.sparse)

    def _mean_pair(self, batch: Ragged) -> Tensor:
        """Both means, their difference and their product (Conneau et al. 2017, https://arxiv.org/abs/1705.02364)."""
        side_N = _segments(batch)
        counts_BS = batch.ids.new_zeros(len(batch) * 2).index_add_(
            0, batch.sequence_ids * 2 + side_N, torch.ones_like(batch.ids)
        )
        order_N = torch.argsort(batch.sequence_ids * 2 + side_N, stable=True)
        starts = counts_BS.cumsum(0) - counts_BS
        first_BD, second_BD = self._mean(batch.ids[order_N], starts).unflatten(0, (-1, 2)).unbind(1)
        return torch.cat((first_BD, second_BD, (first_BD - second_BD).abs(), first_BD * second_BD), 1)

    def feature_weights(self, ids_N: Tensor, group_N: Tensor, groups: int) -> Tensor:
        """(N,) idf divided by the L2 norm of all idf of the same group: the word or character n-grams of a text."""
        assert self.idf is not None
        idf_N = self.idf[ids_N]
        squares_P = idf_N.new_zeros(groups).index_add_(0, group_N, idf_N.square())
        return idf_N / squares_P.clamp(min=1e-12).sqrt()[group_N]

    def tfidf_rows(self, batch: Ragged) -> tuple[Tensor, Tensor]:
        """(N,) row of the table of each feature, and its weight."""
        group_N = self._group(batch)
        if not self.config.pair:
            return batch.ids, self.feature_weights(batch.ids, group_N, 2 * len(batch))
        side_N = _segments(batch)
        weight_N = self.feature_weights(batch.ids, 2 * group_N + side_N, 4 * len(batch))
        both_N = self._in_both(batch) > 0
        return batch.ids + torch.where(both_N, 2, side_N) * self.config.vocabulary, weight_N

    def _group(self, batch: Ragged) -> Tensor:
        """(N,) a number for the word n-grams of each sequence, and one for its character n-grams."""
        return 2 * batch.sequence_ids + (batch.ids > self.config.word_rows).long()

    def _in_both(self, batch: Ragged) -> Tensor:
        """(N,) position + 1 of the same feature in the other text of the pair; 0 if it is not there."""
        key_N = batch.sequence_ids * self.config.vocabulary + batch.ids
        _, inverse_N, count = torch.unique(key_N, return_inverse=True, return_counts=True)
        order_N = torch.argsort(inverse_N, stable=True)
        starts = count.cumsum(0) - count
        first_N, last_N = order_N[starts[inverse_N]], order_N[(starts + count - 1)[inverse_N]]
        here_N = torch.arange(batch.tokens, device=key_N.device)
        return torch.where(count[inverse_N] > 1, first_N + last_N - here_N + 1, 0)

    def _tfidf(self, batch: Ragged) -> Tensor:
        rows_N, weight_N = self.tfidf_rows(batch)
        return self._weighted(rows_N, weight_N, batch)

    def _weighted(self, rows_N: Tensor, weight_N: Tensor, batch: Ragged) -> Tensor:
        return F.embedding_bag(
            rows_N, self.tokens.weight, batch.bounds[:-1].long(), mode="sum", per_sample_weights=weight_N
        )

    def _tfidf_pair(self, batch: Ragged) -> Tensor:
        rows_N, weight_N = self.tfidf_rows(batch)
        return torch.cat((self._weighted(rows_N, weight_N, batch), self.similarities(batch, weight_N)), 1)

    def similarities(self, batch: Ragged, weight_N: Tensor) -> Tensor:
        """(B, 2) the cosine of the two texts of each pair, for word and for character n-grams."""
        other_N = self._in_both(batch)
        product_N = torch.where(other_N > 0, weight_N * weight_N[(other_N - 1).clamp(min=0)], 0.0) / 2
        sums = product_N.new_zeros(2 * len(batch)).index_add_(0, self._group(batch), product_N)
        cosines_BS: Tensor = sums.unflatten(0, (-1, 2))
        return cosines_BS


def _segments(batch: Ragged) -> Tensor:
    if batch.segments is None:
        raise InputError("this network reads pairs of texts, but the batch has no segments.")
    return batch.segments


class BagHead(nn.Module):
    """A linear layer, with a hidden layer before it if `hidden` is not 0."""

    def __init__(self, config: BagConfig, width: int, classes: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear(width, config.hidden) if config.hidden else None
        self.output: Linear = Linear(config.hidden or width, classes)

    def forward(self, x_BD: Tensor) -> Tensor:
        x_BD = self.dropout(x_BD)
        if self.hidden is not None:
            x_BD = F.relu(self.hidden(x_BD))
        logits_BC: Tensor = self.output(x_BD)
        return logits_BC


class WordHead(nn.Module):
    """Adds the bias: the rows of the features of a word and its neighbors are logits already."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.output = Linear(classes, classes)

    def forward(self, x_NC: Tensor) -> Tensor:
        logits_NC: Tensor = self.output(x_NC)
        return logits_NC


class BagNetwork(nn.Module):
    """The table with its heads: `sequence` for texts and pairs, `token` for words."""

    def __init__(self, config: BagConfig, heads: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = BagEncoder(config)
        self.heads = nn.ModuleDict()
        for name, classes in (heads or {}).items():
            if name not in HEADS:
                raise InputError(f'a network without attention has no head "{name}".{did_you_mean(name, HEADS)}')
            head = BagHead(config, head_width(config), classes) if name == "sequence" else WordHead(classes)
            self.heads[name] = head

    @property
    def reader(self) -> BagEncoder:
        return self.encoder

    @property
    def decoder(self) -> None:
        """None: this network does not generate text."""

    def forward(self, batch: Ragged, target: Ragged | None = None, *, at: Tensor | None = None) -> Output:
        """The rows of all features, or of those at the positions `at`, and the logits of the head."""
        if target is not None:
            raise InputError("a network of kind encoder reads one batch, but a target was given too.")
        if "token" in self.heads:
            return self._words(batch, at)
        ids = batch.ids if at is None else batch.ids[at]
        hidden_ND = self.encoder.tokens(ids)
        if "sequence" not in self.heads:
            return Output(hidden_ND, None, None)
        pooled_BD = self.encoder.pooled(batch)
        return Output(hidden_ND, self.heads["sequence"](pooled_BD), pooled_BD)

    def _words(self, batch: Ragged, at: Tensor | None) -> Output:
        """Logits at every token: those of its word, from the features of the words around it in the same text."""
        config = self.config
        words, neighbors = batch.tokens // config.word_features, config.neighbors
        ids_WF = batch.ids[: words * config.word_features].view(words, config.word_features)
        places = 2 * neighbors + 1
        rows_WPC = F.embedding_bag(ids_WF, self.encoder.tokens.weight, mode="sum").view(words, places, -1)
        text_W = batch.sequence_ids[:: config.word_features]
        sums_WC = rows_WPC[:, neighbors].clone()
        for distance in range(1, neighbors + 1):
            same_W1 = (text_W[distance:] == text_W[:-distance]).unsqueeze(1)
            sums_WC[:-distance] += rows_WPC[distance:, neighbors + distance] * same_W1
            sums_WC[distance:] += rows_WPC[:-distance, neighbors - distance] * same_W1
        hidden_NC = sums_WC.repeat_interleave(config.word_features, 0)
        chosen_NC = hidden_NC if at is None else hidden_NC[at]
        return Output(chosen_NC, self.heads["token"](chosen_NC), None)


def head_width(config: BagConfig) -> int:
    """The numbers that a classification head reads."""
    if not config.pair:
        return config.width
    return config.width + SIMILARITIES if config.weighting == "tfidf" else 4 * config.width
