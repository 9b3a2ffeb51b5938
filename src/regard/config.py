"""Configuration of a network: plain values, checked when created, the same for every family."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from regard.errors import InputError, call_or_command, did_you_mean, shorten

Kind = Literal["encoder", "decoder", "encoder-decoder"]

SCORES = ("scaled", "dot", "cosine", "bilinear", "additive")
SELECTIONS = ("soft", "hard")
POSITIONS = ("none", "learned", "sinusoidal", "sinusoidal-halves", "rotary", "relative", "alibi")
ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu", "tanh", "geglu", "geglu-tanh", "swiglu")
NORMS = ("layer", "rms")
POOLS = ("first", "mean", "max")
CELLS = ("gru", "lstm")
ALIGNMENTS = ("none", "dot", "bilinear", "additive")
CENTERS = ("monotone", "predicted")

# Far above every published network. A config with larger values is damaged and refused before anything is allocated:
# layers may share weights and tables are computed, so the stored tensors do not limit them.
LIMITS = {
    "layers": 4096,
    "decoder_layers": 4096,
    "heads": 1 << 16,
    "head_width": 1 << 20,
    "width": 1 << 24,
    "ffn_width": 1 << 24,
    "embedding_width": 1 << 24,
    "vocabulary": 1 << 30,
    "target_vocabulary": 1 << 30,
    "max_tokens": 1 << 30,
    "segments": 1 << 20,
    "buckets": 1 << 20,
}
MAX_NGRAM = 16  # words of an n-gram
MAX_NGRAMS = 1 << 24  # n-grams that a model holds: larger numbers are not exact in fp32
MAX_POSITION_TABLE = 1 << 24  # numbers in a table of sinusoidal positions: 32,768 tokens of width 512


@dataclass(frozen=True)
class AttentionConfig:
    """The attention layers."""

    heads: int
    kv_heads: int | None = None  # heads of keys and values; fewer than `heads` is grouped, 1 is multi-query
    head_width: int | None = None  # width // heads when None
    score: str = "scaled"
    select: str = "soft"
    window: int | None = None  # how many tokens a local layer attends to on each side
    global_every: int = 0  # with a window: every n-th layer, from the first, attends everywhere; 0 for none
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _one_of("attention score", self.score, SCORES)
        _one_of("attention selection", self.select, SELECTIONS)
        _positive("heads", self.heads)
        _at_most(self, "heads", "head_width")
        if self.head_width is not None:
            _positive("head_width", self.head_width)
        _not_negative("window", self.window)
        _not_negative("global_every", self.global_every)
        _check_dropout("attention dropout", self.dropout)
        if self.kv_heads is not None and (self.kv_heads < 1 or self.heads % self.kv_heads):
            raise InputError(f"{self.kv_heads} key-value heads do not divide {self.heads} heads. Use a divisor.")


@dataclass(frozen=True)
class RotaryScaling:
    """Scaling of rotary positions to longer texts than in pretraining."""

    kind: str  # "linear", "llama3" or "yarn"
    factor: float
    original_length: int | None = None  # maximum length in pretraining; needed by llama3 and yarn
    low: float = 1.0  # llama3: low_freq_factor; yarn: beta_slow
    high: float = 4.0  # llama3: high_freq_factor; yarn: beta_fast
    attention_factor: float | None = None  # yarn: factor on cosine and sine, from `factor` when None

    def __post_init__(self) -> None:
        _one_of("rotary scaling", self.kind, ("linear", "llama3", "yarn"))
        for name in ("low", "high", "attention_factor"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f'"{name}" of rotary scaling must be a number above 0, not {value}.')
        if self.kind == "llama3" and self.low == self.high:
            raise InputError(f'"low" and "high" of rotary scaling are both {self.low}; they must differ.')
        if self.original_length is not None:
            _positive("the original length of rotary positions", self.original_length)
        if not 0 < self.factor < math.inf:
            raise InputError(f"the factor of rotary scaling must be above 0, not {self.factor}.")
        if self.kind != "linear" and self.original_length is None:
            raise InputError(f'rotary scaling "{self.kind}" needs the original length of the positions.')


@dataclass(frozen=True)
class PositionConfig:
    """The positions of tokens."""

    kind: str = "learned"
    max_tokens: int | None = 512  # maximum tokens of a sequence; None for no limit
    offset: int = 0  # rows of a learned table before position 0
    theta: float = 10000.0  # rotary base
    local_theta: float | None = None  # rotary base of local layers, if different
    scaling: RotaryScaling | None = None
    buckets: int = 32  # relative
    max_distance: int = 128  # relative: distances beyond share the last bucket

    def __post_init__(self) -> None:
        _one_of("positions", self.kind, POSITIONS)
        thetas = (self.theta, self.theta if self.local_theta is None else self.local_theta)
        if self.kind == "rotary" and not all(1 < theta < math.inf for theta in thetas):
            raise InputError(f"rotary positions need a base (theta) above 1, not {self.theta} and {self.local_theta}.")
        if self.max_tokens is None and self.kind in ("learned", "sinusoidal", "sinusoidal-halves"):
            raise InputError(f'{self.kind} positions need "max_tokens", the number of positions of the table.')
        _at_most(self, "max_tokens", "buckets")
        if self.max_tokens is not None:
            _positive("max_tokens", self.max_tokens)
        _not_negative("offset", self.offset)
        if self.kind == "relative":
            _check_buckets(self.buckets, self.max_distance)


@dataclass(frozen=True)
class PoolConfig:
    """Pooling: how a sequence becomes one vector for classification."""

    pooling: str = "first"
    activation: str = "tanh"
    norm: bool = False
    bias: bool = True
    transform_tokens: bool = False  # the same transform is also used by token and span heads

    def __post_init__(self) -> None:
        _one_of("pooling", self.pooling, POOLS)
        _one_of("activation", self.activation, ACTIVATIONS)


@dataclass(frozen=True)
class ModelConfig:
    """The configuration of a Transformer; every family is a choice of these values."""

    vocabulary: int
    width: int
    layers: int  # of the encoder, or of a decoder-only network
    ffn_width: int  # width of the hidden layer of the feed-forward part
    attention: AttentionConfig
    positions: PositionConfig = field(default_factory=PositionConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    kind: Kind = "encoder"
    decoder_layers: int = 0  # of the decoder of an encoder-decoder
    activation: str = "gelu"
    norm: str = "layer"
    norm_first: bool = False  # pre-norm with a final norm; else post-norm
    eps: float = 1e-12
    bias: bool = True
    segments: int = 0  # number of segment ids; 0 for none
    embedding_width: int | None = None  # factorized embeddings, projected to `width`
    embedding_norm: bool = True
    embedding_scale: bool = False  # multiply embeddings by sqrt(width)
    distinct_layers: int | None = None  # fewer than `layers` when layers share weights
    tied: bool = True  # the output layer shares the embedding matrix
    output: str = "plain"  # or "scaled": hidden states times width ** -0.5; or "biased": logits plus a fixed bias
    target_vocabulary: int | None = None  # of a decoder with its own vocabulary; the encoder's when None
    dropout: float = 0.1
    init_std: float | None = 0.02  # standard deviation of initial weights; by fan-in when None

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "layers", "ffn_width"):
            _positive(name, getattr(self, name))
        _at_most(self, "vocabulary", "width", "layers", "ffn_width", "decoder_layers", "segments", "target_vocabulary")
        for name in ("embedding_width", "distinct_layers"):
            if getattr(self, name) is not None:
                _positive(name, getattr(self, name))
        _not_negative("segments", self.segments)
        _check_dropout("dropout", self.dropout)
        if not 0 < self.eps < 1:
            raise InputError(
                f"eps of the norms must be above 0 and below 1, not {self.eps}. Published values: 1e-12 to 1e-5."
            )
        if self.init_std is not None and not 0 <= self.init_std < math.inf:
            raise InputError(
                f"init_std, the standard deviation of initial weights, must be at least 0, not {self.init_std}."
            )
        if self.distinct_layers is not None and self.distinct_layers > self.layers:
            raise InputError(f"{self.layers} layers cannot be made of {self.distinct_layers} distinct ones.")
        _one_of("kind", self.kind, ("encoder", "decoder", "encoder-decoder"))
        _one_of("activation", self.activation, ACTIVATIONS)
        _one_of("norm", self.norm, NORMS)
        _one_of("output", self.output, ("plain", "scaled", "biased"))
        if (self.kind == "encoder-decoder") != (self.decoder_layers > 0):
            raise InputError(f"a network of kind {self.kind} cannot have {self.decoder_layers} decoder layers.")
        _check_target(self.target_vocabulary, self.kind)
        if self.attention.head_width is None and self.width % self.attention.heads:
            small = [n for n in range(1, math.isqrt(self.width) + 1) if self.width % n == 0]
            near = sorted({*small, *(self.width // n for n in small)})
            best = min(near, key=lambda n: abs(n - self.attention.heads))
            head_width = call_or_command("attention.head_width", "--model.attention.head-width")
            raise InputError(
                f"{self.attention.heads} heads do not divide the width {self.width}. "
                f"Use {best} heads, or set {head_width}."
            )
        if self.positions.kind == "rotary" and self.head_width % 2:
            raise InputError(f"rotary positions need an even head width, not {self.head_width}.")
        width = self.embedding_width or self.width
        numbers = (self.max_tokens or 0) * width
        if self.positions.kind.startswith("sinusoidal") and numbers > MAX_POSITION_TABLE:
            raise InputError(
                f"sinusoidal positions for {self.max_tokens:,} tokens of width {width:,} need "
                f"a table of {numbers:,} numbers; expected at most {MAX_POSITION_TABLE:,}. Allow fewer tokens."
            )

    @property
    def output_vocabulary(self) -> int:
        """Size of the output vocabulary."""
        return self.target_vocabulary or self.vocabulary

    @property
    def head_width(self) -> int:
        return self.attention.head_width or self.width // self.attention.heads

    @property
    def kv_heads(self) -> int:
        return self.attention.kv_heads or self.attention.heads

    @property
    def max_tokens(self) -> int | None:
        return self.positions.max_tokens


@dataclass(frozen=True)
class RecurrentConfig:
    """The configuration of a recurrent network: a decoder, an encoder-decoder, or a bidirectional language model.

    Without attention (score "none"), an encoder-decoder passes on the last state only. An encoder is a forward and a
    backward language model, which do not see each other.
    """

    vocabulary: int
    width: int  # of a state; each direction of the encoder has half of it
    embedding_width: int
    layers: int = 1  # of the encoder, and of the decoder
    kind: Kind = "encoder-decoder"
    cell: str = "gru"
    bidirectional: bool = True
    score: str = "none"  # attention score of decoder and encoder states; none for no attention
    window: int | None = None  # local attention: tokens on each side of its center; None for global attention
    center: str = "monotone"  # of a local window: the same position in the source, or a predicted one
    input_feeding: bool = False  # the attention output of a step is an input of the next
    tied: bool = False  # the output layer shares the embedding matrix
    target_vocabulary: int | None = None  # of a decoder with its own vocabulary; the encoder's when None
    dropout: float = 0.2

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "embedding_width", "layers"):
            _positive(name, getattr(self, name))
        _at_most(self, "vocabulary", "width", "embedding_width", "layers", "target_vocabulary")
        _check_dropout("dropout", self.dropout)
        _one_of("kind of recurrent network", self.kind, ("encoder", "decoder", "encoder-decoder"))
        _check_target(self.target_vocabulary, self.kind)
        _one_of("cell", self.cell, CELLS)
        _one_of("attention score", self.score, ALIGNMENTS)
        _one_of("center", self.center, CENTERS)
        if self.kind != "encoder-decoder" and self.score != "none":
            raise InputError(
                f'a {self.kind}-only network has no attention over a source, but score is "{self.score}". Use none.'
            )
        if self.kind == "encoder" and 2 * self.embedding_width != self.width:
            raise InputError(
                f"layers are mixed, so embeddings of width {self.embedding_width} must be as wide as the states of one "
                f"direction: half of the width {self.width}."
            )
        if self.kind != "decoder" and self.bidirectional and self.width % 2:
            raise InputError(f"two directions need an even width, not {self.width}.")
        side = self.width // 2 if self.kind == "encoder" else self.width
        if self.tied and self.embedding_width != side:
            raise InputError(
                f"tied embeddings of width {self.embedding_width} do not fit states of width {side}. "
                "Make them equal, or set tied to false."
            )
        if self.window is not None and (self.window < 1 or self.score == "none"):
            raise InputError(
                f"a window of {self.window} needs attention (score not none) and at least 1 token on each side."
            )
        if self.input_feeding and self.score == "none":
            raise InputError("input feeding needs attention. Set score, or leave input_feeding out.")

    @property
    def output_vocabulary(self) -> int:
        """Size of the output vocabulary."""
        return self.target_vocabulary or self.vocabulary

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder of an encoder-decoder."""
        return self.layers if self.kind == "encoder-decoder" else 0

    @property
    def max_tokens(self) -> int | None:
        return None

    @property
    def segments(self) -> int:
        return 0

    @property
    def init_std(self) -> float | None:
        return None


class WithoutLayers:
    """What the configs of networks that look features or counts up in a table have in common."""

    vocabulary: int

    @property
    def layers(self) -> int:
        return 0

    @property
    def decoder_layers(self) -> int:
        return 0

    @property
    def tied(self) -> bool:
        return False

    @property
    def target_vocabulary(self) -> None:
        """None: they read one text and write none in another language."""

    @property
    def output_vocabulary(self) -> int:
        return self.vocabulary

    @property
    def max_tokens(self) -> int | None:
        return None

    @property
    def init_std(self) -> float | None:
        return None


@dataclass(frozen=True)
class BagConfig(WithoutLayers):
    """The configuration of a network without attention: a text is a set of features, each with a row of a table.

    Weighting "mean" is the mean of the rows; "tfidf" is their sum, weighted by idf, with L2 norm, for the word n-grams
    and the character n-grams of a text. With `neighbors`, each word is classified from the rows of its own features and
    of those of the words around it.
    """

    vocabulary: int  # rows of the table; for pairs, features of either text
    width: int  # of a row
    weighting: str = "mean"
    word_rows: int = 0  # tfidf: number of word n-grams, which come first; the others are character n-grams
    hidden: int = 0  # width of a hidden layer of the classification head; 0 for none
    pair: bool = False  # whether a classification head reads two texts
    neighbors: int = 0  # words on each side
    word_features: int = 1  # features of each word, where words are classified
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "word_features"):
            _positive(name, getattr(self, name))
        for name in ("word_rows", "hidden", "neighbors"):
            _not_negative(name, getattr(self, name))
        _at_most(self, "vocabulary", "width")
        _one_of("weighting", self.weighting, ("mean", "tfidf"))
        _check_dropout("dropout", self.dropout)
        if max(self.hidden, self.neighbors, self.word_features, self.word_rows) > LIMITS["vocabulary"]:
            raise InputError("hidden, neighbors, word_features or word_rows is too large for any network.")

    @property
    def kind(self) -> Kind:
        return "encoder"

    @property
    def segments(self) -> int:
        return 2 if self.pair else 0


@dataclass(frozen=True)
class NgramConfig(WithoutLayers):
    """The configuration of an n-gram language model: how many words it counts together, and how many it has counted."""

    vocabulary: int
    order: int = 2  # words of an n-gram: 2 for bigrams
    entries: int = 1  # n-grams of all lengths that were seen
    discount: float = 0.75  # subtracted from each count, for words that were not seen; 0 for plain counts

    def __post_init__(self) -> None:
        for name in ("vocabulary", "order", "entries"):
            _positive(name, getattr(self, name))
        _at_most(self, "vocabulary")
        if self.order > MAX_NGRAM or self.entries > MAX_NGRAMS:
            raise InputError(
                f"{self.entries:,} n-grams of up to {self.order} words; expected at most {MAX_NGRAMS:,} of up to "
                f"{MAX_NGRAM} words. Use less text or shorter n-grams."
            )
        if not 0 <= self.discount < 1:
            raise InputError(f"discount must be at least 0 and below 1, not {self.discount}.")

    @property
    def kind(self) -> Kind:
        return "decoder"

    @property
    def width(self) -> int:
        """Words of context."""
        return max(self.order - 1, 1)

    @property
    def segments(self) -> int:
        return 0

    @property
    def dropout(self) -> float:
        return 0.0


Config = ModelConfig | RecurrentConfig | BagConfig | NgramConfig


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f'{what} "{value}" is not known.{did_you_mean(value, choices)}')


def _positive(what: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{what} must be at least 1, not {value}.")


def _not_negative(what: str, value: int | None) -> None:
    if value is not None and value < 0:
        raise InputError(f"{what} must be at least 0, not {value}.")


def _check_dropout(what: str, value: float) -> None:
    if not 0 <= value < 1:
        raise InputError(f"{what} must be at least 0 and below 1, not {value}.")


def _check_buckets(buckets: int, max_distance: int) -> None:
    """Each direction of an encoder has half of the buckets, and half of these are for near distances, one each."""
    if buckets < 4:
        raise InputError(f"relative positions need at least 4 buckets, not {buckets}.")
    if max_distance <= buckets // 2:
        raise InputError(
            f"relative positions with {buckets} buckets must reach beyond {buckets // 2} tokens, not {max_distance}."
        )


def _at_most(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and value > LIMITS[name]:
            raise InputError(f"{name} is {shorten(str(value), 40)}, expected at most {LIMITS[name]:,}.")


def _check_target(size: int | None, kind: Kind) -> None:
    if size is None:
        return
    _positive("target_vocabulary", size)
    if kind != "encoder-decoder":
        raise InputError(f"a network of kind {kind} has one vocabulary. Leave target_vocabulary out.")
