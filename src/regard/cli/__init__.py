"""The verbs of the command line, and the only room that prints.

Answers go to stdout, progress and warnings to stderr. Exit 0, 1 for what a user can fix, 2 for wrong use. Nothing
heavy is imported before a verb needs it, so that `regard --help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tyro
from tyro.conf import FlagCreatePairsOff

from regard import __version__
from regard.cli.commands import (
    attention,
    check,
    doctor,
    embed,
    evaluate,
    fill,
    generate,
    info,
    predict,
    pretrain,
    sample,
    search,
    tokenizer,
    train,
    translate,
    vectors,
)
from regard.cli.flags import READERS
from regard.cli.output import UsageError, Verb, check_batch_tokens
from regard.cli.terminal import parsed, plain_stdout, prepare_streams, print_error
from regard.errors import RegardError, UntrainedWarning, did_you_mean, shortened

VERBS: dict[str, Verb] = {
    "info": Verb(info.Info, info.ABOUT, info.run),
    "check": Verb(check.Check, check.ABOUT, check.run),
    "train": Verb(train.Train, train.ABOUT, train.run, train.parse),
    "evaluate": Verb(evaluate.Evaluate, evaluate.ABOUT, evaluate.run),
    "predict": Verb(predict.Predict, predict.ABOUT, predict.run),
    "pretrain": Verb(pretrain.Pretrain, pretrain.ABOUT, pretrain.run, pretrain.parse),
    "fill": Verb(fill.Fill, fill.ABOUT, fill.run),
    "attention": Verb(attention.Attention, attention.ABOUT, attention.run),
    "embed": Verb(embed.Embed, embed.ABOUT, embed.run),
    "search": Verb(search.Search, search.ABOUT, search.run),
    "generate": Verb(generate.Generate, generate.ABOUT, generate.run),
    "translate": Verb(translate.TranslateTexts, translate.ABOUT, translate.run),
    "tokenizer": Verb(tokenizer.LearnTokenizer, tokenizer.ABOUT, tokenizer.run),
    "vectors": Verb(vectors.LearnVectors, vectors.ABOUT, vectors.run),
    "sample": Verb(sample.Sample, sample.ABOUT, sample.run),
    "doctor": Verb(doctor.Doctor, doctor.ABOUT, doctor.run),
}

HELP = """usage: regard VERB [-h] [OPTIONS] ...

Attention, Transformers and BERT: from text and a task to a small, fast model.

Verbs:
{verbs}

Examples:
  regard sample messages                    a small data set to try it on
  regard train reviews.csv --out runs/mine  a model for your data
  regard predict runs/mine "a text"         what it says of a text
  regard info bert-base-uncased             what a network is, before anything is downloaded
  regard embed minilm "a text" "another"    one vector a text
  regard embed --help                       everything a verb can do, with examples

MODEL is a folder, "minilm", a published name such as gpt2 (its published weights), or a hub id; an untrained network is
trained from its shape: --preset NAME. Every verb takes --json. Answers go to stdout, progress and warnings to stderr;
the exit status is 0, 1 for something that failed, 2 for wrong use. regard --version tells the version."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit status."""
    try:
        prepare_streams()
        with _warnings_on_stderr():
            status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # from the parser, which has said why
        return int(stop.code or 0)
    except UsageError as error:
        print_error(error)
        return 2
    except RegardError as error:
        print_error(error.with_flags)
        return 130 if getattr(error, "signal", None) == signal.SIGINT else 1  # a training that Ctrl-C stopped
    except KeyboardInterrupt:
        print_error("stopped")
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a name too long for any file, an output that is full
        name = "" if error.filename is None else f"{shortened(str(error.filename), 100)}: "
        print_error(f"{name}{error.strerror or error}")
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        print_error("there is not enough memory. Use a smaller model, a smaller --batch-tokens or less data at once.")
        return 1


def _lacks_memory(error: BaseException) -> bool:
    """Whether memory ran out, as Python, torch on a CPU (a plain RuntimeError) and torch on a GPU say it."""
    said = str(error)
    return isinstance(error, MemoryError) or any(
        words in said for words in ("not enough memory", "can't allocate memory", "out of memory")
    )


def _run(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help"):
        verbs = "\n".join(f"  {name:<10}{verb.about.splitlines()[0]}" for name, verb in VERBS.items())
        print(HELP.format(verbs=verbs), file=sys.stdout if given else sys.stderr)
        return 0 if given else 2
    if given[0] == "--version":
        print(f"regard {__version__}")
        return 0
    if given[0] not in VERBS:
        raise UsageError(f'"{given[0]}" is not a verb.{did_you_mean(given[0], VERBS)} See regard --help.')
    verb, prog = VERBS[given[0]], f"regard {given[0]}"
    told: dict[str, Any] = {
        "prog": prog,
        "description": verb.about,
        "config": (FlagCreatePairsOff,),
        "registry": READERS,
    }
    words = given[1:]
    settings = parsed(
        lambda: verb.parse(words, **told) if verb.parse else tyro.cli(verb.settings, args=words, **told), words
    )
    check_batch_tokens(settings)
    with plain_stdout():
        verb.run(settings)
    return 0


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        """Once per command: a file that is read twice is reported once."""
        if str(message) not in shown:
            shown.add(str(message))
            print_error(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        warnings.simplefilter("always", UntrainedWarning)  # shown with any warning filter
        yield
