"""The command line. This is the only package that prints.

Results go to stdout, progress and warnings to stderr. The exit status is 0, 1 for an error, 2 for wrong arguments.
A command is imported when it is used, and imports the heavy packages that it needs: `regard --help` answers at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from regard._version import __version__
from regard.cli.command import Command
from regard.cli.commands import Commands
from regard.cli.output import UsageError, check_batch_tokens
from regard.cli.terminal import parsed, plain_stdout, prepare_streams, print_error
from regard.errors import RegardError, UntrainedWarning, did_you_mean, shorten

COMMANDS = Commands()

HELP = """usage: regard COMMAND [-h] [OPTIONS] ...

Train, evaluate and run BERT, GPT and other Transformers on your own texts.

Commands:
{commands}

Examples:
  regard sample messages                    write a small data set to try the commands on
  regard train reviews.csv --out runs/mine  train a model on your data
  regard predict runs/mine "a text"         predict the label of a text
  regard info bert-base-uncased             show the size and shape of a model, without downloading it
  regard embed minilm "a text" "another"    compute one vector per text
  regard embed --help                       list all options of a command, with examples

MODEL is a folder, "minilm", a published name such as gpt2 (its published weights), or a hub id. To train a network from
scratch, use --preset NAME. Every command takes --json. Results go to stdout, progress and warnings to stderr. The exit
status is 0, 1 for an error, or 2 for wrong arguments. regard --version prints the version."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
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
    except KeyboardInterrupt as stop:
        print_error(_with_notes("stopped", stop))
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a name too long for any file, an output that is full
        name = "" if error.filename is None else f"{shorten(str(error.filename), 100)}: "
        print_error(_with_notes(f"{name}{error.strerror or error}", error))
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        advice = "Use a smaller model, a smaller --batch-tokens or less data at once."
        print_error(_with_notes(f"there is not enough memory. {advice}", error))
        return 1


def _with_notes(message: str, error: BaseException) -> str:
    """A message with the notes of an error, such as what is kept."""
    notes = getattr(error, "__notes__", ())
    return ". ".join((message.rstrip("."), *notes)) if notes else message


def _lacks_memory(error: BaseException) -> bool:
    """Whether memory ran out, as Python, torch on a CPU (a plain RuntimeError) and torch on a GPU say it."""
    message = str(error)
    return isinstance(error, MemoryError) or any(
        words in message for words in ("not enough memory", "can't allocate memory", "out of memory")
    )


def register(command: Command) -> None:
    """Add a command that is defined outside this package."""
    COMMANDS[command.name] = command


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        commands = "\n".join(f"  {name:<10}{summary}" for name, summary in COMMANDS.summaries().items())
        print(HELP.format(commands=commands), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"regard {__version__}")
        return 0
    if words[0] not in COMMANDS:
        raise UsageError(f'"{words[0]}" is not a command.{did_you_mean(words[0], COMMANDS)} See regard --help.')
    command = COMMANDS[words[0]]
    arguments = parsed(lambda: _parse(command, words[1:]), words[1:])
    check_batch_tokens(arguments)
    with plain_stdout():
        command.run(arguments)
    return 0


def _parse(command: Command, words: list[str]) -> Any:
    """The words after the command as an instance of its arguments."""
    import tyro

    from regard.cli.flags.unknown_flags import check_flags
    from regard.cli.flags.values import FLAG_PARSERS

    check_flags(command, words)
    if {"-h", "--help"} & set(itertools.takewhile(lambda word: word != "--", words)):
        words = ["--help"]  # of the whole command: the parser leaves out what was given before it
    options: dict[str, Any] = {
        "prog": f"regard {command.name}",
        "description": command.help,
        "config": (tyro.conf.FlagCreatePairsOff,),
        "registry": FLAG_PARSERS,
    }
    if command.parse is not None:
        return command.parse(words, **options)
    return tyro.cli(command.arguments, args=words, **options)


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
