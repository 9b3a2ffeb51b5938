"""Text generation: continuations of prompts, or answers of an encoder-decoder."""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, overload

from regard.checkpoint.folder import Checkpoint
from regard.errors import InputError
from regard.model.network import Network
from regard.predict.model_task import capabilities
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imported by the first call: most models only classify or embed
    from regard.generate.generator import Continuation, TextGenerator


class GenerationMixin:
    """The part of `Model` that generates; `settings` are those of `regard.generate.settings.DecodingSettings`."""

    checkpoint: Checkpoint
    tokenizer: Tokenizer | None
    compile: bool

    @property
    def inference_network(self) -> Network:
        """The network as the engine computes it; implemented by `Model`."""
        raise NotImplementedError

    @overload
    def generate(self, prompt: str, **settings: Any) -> str: ...
    @overload
    def generate(self, prompt: Sequence[str], **settings: Any) -> list[str]: ...
    def generate(self, prompt: str | Sequence[str], **settings: Any) -> str | list[str]:
        """The generated text for a prompt, or one text for each of several prompts."""
        texts = self.writer.texts([prompt] if isinstance(prompt, str) else list(prompt), settings)
        return texts[0] if isinstance(prompt, str) else texts

    def generate_ids(self, prompts: Sequence[Sequence[int]], **settings: Any) -> list[list[int]]:
        """The generated ids for each prompt; for an encoder-decoder, those after its start token."""
        return self.writer.ids(prompts, settings)

    def continuations(
        self, prompts: Sequence[str] | Sequence[Sequence[int]], **settings: Any
    ) -> list[list[Continuation]]:
        """The `best` continuations of each prompt, texts or ids, with log-probabilities and why they ended."""
        return self.writer.continuations(prompts, settings)

    def stream(self, prompt: str, **settings: Any) -> Generator[str, None, Continuation]:
        """The generated text in pieces, each as soon as it is final; with several beams, one piece at the end."""
        return self.writer.stream(prompt, settings)

    @functools.cached_property
    def writer(self) -> TextGenerator:
        """The text generator of the network; an error if the network cannot generate."""
        from regard.checkpoint.generation import read_generation
        from regard.generate.generator import TextGenerator

        network = self.inference_network
        if network.decoder is None or "language" not in network.heads:
            reason = "is encoder-only" if network.decoder is None else "has no language model head"
            raise InputError(
                f"this {self.checkpoint.family} model {reason} and cannot generate. {capabilities(network)} To "
                "generate, load a decoder (gpt2, llama) or an encoder-decoder (t5, bart, marian) with its "
                "language model head."
            )
        ends, defaults = read_generation(self.checkpoint)
        device = next(network.parameters()).device
        return TextGenerator(
            network, ends, device, self.tokenizer, defaults, fixed_shapes=self.compile and device.type == "cuda"
        )
