"""`regard attention`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from regard.cli.arguments import Device, Json, ModelName, check_output
from regard.cli.command import Command
from regard.cli.output import UsageError, print_json, untrained_field
from regard.errors import InputError

if TYPE_CHECKING:
    from regard.predict.attention import AttentionWindow
    from regard.predict.model import Model

HELP = """Show the attention weights of a text, for any layers and heads.

Examples:
  regard attention minilm "The cook who burned the soup opened a window."
  regard attention minilm "a text" --layers 1 6 --heads 0 3 --json
  regard attention minilm "a text" --layers all --output weights.npz
  regard attention minilm "a text" --heads 0 1 2 --plot attention.png
  regard attention minilm "$(cat page.txt)" --output weights.npz      a long text is split into windows"""

STRONGEST = 3  # tokens shown for each


@dataclass(frozen=True)
class AttentionCommand:
    model: ModelName
    text: Annotated[Positional[str], arg(help="Text to analyze.", metavar="TEXT")]
    pair: Annotated[str | None, arg(help="Second text, encoded together with the first as a pair.", metavar="TEXT")] = (
        None
    )
    layers: Annotated[
        tuple[int | Literal["all"], ...],
        arg(help="Layers, counted from 1; -1 is the last, all is every layer.", metavar="N..."),
    ] = (-1,)
    heads: Annotated[tuple[int, ...], arg(help="Heads, counted from 0; all heads if not given.", metavar="N...")] = ()
    output: Annotated[Path | None, arg(help="Write the weights to this file as numpy arrays.", metavar="FILE.npz")] = (
        None
    )
    plot: Annotated[Path | None, arg(help="Draw the weights to this file: .png, .svg or .pdf.", metavar="FILE.png")] = (
        None
    )
    device: Device = "auto"
    json: Json = False


def run(command: AttentionCommand) -> None:
    _check(command)
    from regard.config import ModelConfig
    from regard.predict import load
    from regard.predict.attention import attention_layers, attention_windows

    model = load(command.model, device=command.device)
    try:
        layers = attention_layers(model.network, _layers(command.layers))
    except InputError as error:
        if not isinstance(model.config, ModelConfig):
            raise
        raise UsageError(error.with_flags) from error
    windows = attention_windows(
        model.network, model.require_tokenizer(), command.text, command.pair, layers=layers, heads=command.heads or None
    )
    assert isinstance(model.config, ModelConfig)
    count = model.config.attention.heads
    heads = [head % count for head in command.heads] or list(range(count))
    if command.plot is not None:
        _plot(command.plot, windows, heads)
    elif command.output is not None:
        written = _write(command.output, windows, heads)
        summary: dict[str, Any] = {"windows": written, "layers": layers, "heads": heads}
        summary |= {"output": str(command.output)} | untrained_field(model)
        print_json(summary) if command.json else print(_summary(written, len(layers), len(heads), command.output))
    elif command.json:
        _print_json(model, windows, heads)
    else:
        _print(windows)


def _check(command: AttentionCommand) -> None:
    if command.plot is not None and command.output is not None:
        raise UsageError("--plot and --output were given; give one of them.")
    if command.output is not None and command.output.suffix != ".npz":
        raise UsageError(f"--output {command.output}: expected a name that ends in .npz.")
    if command.plot is not None and command.plot.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--plot {command.plot}: expected a name that ends in .png, .svg or .pdf.")
    check_output(command.output, "--output", model=command.model)
    check_output(command.plot, "--plot", model=command.model)


def _layers(layers: tuple[int | Literal["all"], ...]) -> list[int] | None:
    """The chosen layers; None for all of them."""
    if "all" in layers:
        return None
    return [layer for layer in layers if isinstance(layer, int)] or None


def _stacked(window: AttentionWindow) -> Any:
    """(layers, heads, tokens, tokens)."""
    import torch

    return torch.stack([weights.float().cpu() for weights in window.weights.values()]).numpy()


def _print_json(model: Model, windows: Iterator[AttentionWindow], heads: list[int]) -> None:
    """One object a window."""
    for number, window in enumerate(windows):
        values = {
            "window": number,
            "tokens": list(window.tokens),
            "offsets": [list(span) for span in window.offsets],
            "layers": list(window.weights),
            "heads": heads,
            "weights": _stacked(window).round(6).tolist(),
        }
        print_json(values | untrained_field(model))


def _write(path: Path, windows: Iterator[AttentionWindow], heads: list[int]) -> int:
    """Arrays of every window, one window in memory at a time; how many there are."""
    import zipfile

    import numpy as np

    from regard.data.atomic import atomic_path

    count = 0
    with atomic_path(path) as new_file, zipfile.ZipFile(new_file, "w") as archive:

        def put(name: str, array: Any) -> None:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)

        for window in windows:
            put(f"weights_{count}", _stacked(window))
            put(f"tokens_{count}", np.array(window.tokens, dtype=np.str_))
            put(f"offsets_{count}", np.array(window.offsets, dtype=np.int64))
            if count == 0:
                put("layers", list(window.weights))
                put("heads", heads)
            count += 1
    return count


def _plot(path: Path, windows: Iterator[AttentionWindow], heads: list[int]) -> None:
    from regard.predict.plots.attention import draw_attention

    first = next(windows)
    draw_attention(first, heads, path)
    print(f"{len(first.weights) * len(heads)} heads, {len(first.tokens)} tokens: {path}")


def _summary(windows: int, layers: int, heads: int, path: Path) -> str:
    parts = [(windows, "window"), (layers, "layer"), (heads, "head")]
    return ", ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in parts) + f": {path}"


def _print(windows: Iterator[AttentionWindow]) -> None:
    """For each token the tokens it attends to most, on the mean of the heads."""
    for number, window in enumerate(windows):
        if number:
            print()
        width = max(len(token) for token in window.tokens)
        for layer, weights_HTT in window.weights.items():
            print(f"window {number + 1}, layer {layer}, mean of {len(weights_HTT)} heads")
            mean_TT = weights_HTT.float().mean(0)
            best = mean_TT.topk(min(STRONGEST, mean_TT.shape[1]))
            for token, values, indices in zip(window.tokens, best.values.tolist(), best.indices.tolist(), strict=True):
                strongest = [
                    f"{window.tokens[index]} {value:.2f}" for value, index in zip(values, indices, strict=True)
                ]
                print(f"  {token.ljust(width)}  {', '.join(strongest)}")


COMMAND = Command(name="attention", arguments=AttentionCommand, help=HELP, run=run)
