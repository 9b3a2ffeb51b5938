"""Printing of explanations: words in color, and tables of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.cli.terminal import drawing_stdout
from regard.errors import escape_control_characters

if TYPE_CHECKING:
    from regard.look.dataset.faithfulness import Faithfulness
    from regard.look.dataset.word_importance import WordImportance
    from regard.look.explain.explanation import Explanation, WordScore
    from regard.metrics.confidence import Score

VALUES = {
    "class": "logit",
    "tag": "logit",
    "span": "logit",
    "number": "value",
    "similarity": "cosine",
    "norm": "length",
}
GREEN, RED = (46, 160, 67), (218, 54, 51)


def print_explanation(explanation: Explanation, *, top: int) -> None:
    """Print what was explained, the text in color where stdout is a terminal, and the words with the largest scores."""
    target = explanation.target
    parts = [f"{VALUES.get(target.kind, 'logit')} {explanation.value:.3f}"]
    if explanation.probability is not None:
        parts.append(f"probability {explanation.probability:.3f}")
    print(f"{target.description}: {', '.join(parts)}")
    print(f"method: {explanation.method}{_sum_in_words(explanation)}")
    if explanation.windows > 1:
        print(f"The text is longer than the model's maximum: it was read in {explanation.windows} windows.")
    if explanation.note is not None:
        print(explanation.note)
    _print_colored(explanation)
    print()
    ranked = sorted(explanation.words, key=lambda word: -abs(word.score))[:top]
    for word in ranked:
        score = f"{word.score:+.4f}" if explanation.signed else f"{word.score:.4f}"
        print(f"{score.rjust(9)}  {word.text}")
    if explanation.faithfulness is not None:
        one = explanation.faithfulness
        print()
        print(f"comprehensiveness {one.comprehensiveness:.3f} (random order {one.random_comprehensiveness:.3f})")
        print(f"sufficiency       {one.sufficiency:.3f} (random order {one.random_sufficiency:.3f})")
        if one.normalized is not None:
            print(f"normalized        {one.normalized:.3f} (0: the worst order of words, 1: the best)")


def _sum_in_words(explanation: Explanation) -> str:
    """What the scores add up to, for methods whose scores add up."""
    if explanation.bias is not None:
        return f"; tokens add up to {sum(explanation.token_scores):.3f}, biases to {explanation.bias:.3f}"
    if explanation.baseline_value is not None:
        total = sum(explanation.token_scores)
        return f"; tokens add up to {total:.3f}, the value without words is {explanation.baseline_value:.3f}"
    return ""


def _print_colored(explanation: Explanation) -> None:
    """The texts with a background for each word: green speaks for the answer, red against it."""
    stream = drawing_stdout()
    if not stream.isatty():
        return
    from rich.console import Console
    from rich.text import Text

    largest = max((abs(word.score) for word in explanation.words), default=0.0)
    texts = [explanation.text] if explanation.pair is None else [explanation.text, explanation.pair]
    for number, text in enumerate(texts):
        words = [word for word in explanation.words if word.sequence == number]
        Console(file=stream, highlight=False).print(_colored(Text, text, words, largest))


def _colored(rich_text: type, text: str, words: Sequence[WordScore], largest: float) -> object:
    result = rich_text()
    end = 0
    for word in words:
        result.append(escape_control_characters(text[end : word.start]))
        result.append(escape_control_characters(text[word.start : word.end]), style=_style(word.score, largest))
        end = word.end
    result.append(escape_control_characters(text[end:]))
    return result


def _style(score: float, largest: float) -> str:
    """A color whose strength is the size of the score."""
    share = abs(score) / largest if largest else 0.0
    if share < 0.05:
        return ""
    strong = GREEN if score > 0 else RED
    mixed = [round(share * color + (1 - share) * 255) for color in strong]
    return f"rgb(0,0,0) on rgb({mixed[0]},{mixed[1]},{mixed[2]})"


def print_important_words(result: WordImportance) -> None:
    """Print the most important words of each class, with the accuracy with and without them."""
    print(f"{result.texts} texts, method {result.method}, words erased by {result.erased_by}")
    for one in result.classes:
        print()
        print(f"{one.label}: {one.texts} texts")
        width = max((len(word.word) for word in one.words), default=4)
        if one.words:
            print(f"  {'word'.ljust(width)}  mean score  texts  labeled so")
        for word in one.words:
            share = "" if word.share is None else f"{word.share:.0%}"
            print(f"  {word.word.ljust(width)}  {word.score:>+10.4f}  {word.texts:>5}  {share:>10}")
        if one.accuracy is not None and one.accuracy_without is not None:
            print(f"  accuracy on texts with these words {_interval(one.accuracy)}")
            print(f"  accuracy without these words       {_interval(one.accuracy_without)}")


def print_faithfulness(result: Faithfulness) -> None:
    """Print the scores of each method with their intervals."""
    print(f"{result.texts} texts, words erased by {result.erased_by}")
    width = max(len(one.method) for one in result.methods)
    print(f"{'method'.ljust(width)}  comprehensiveness         sufficiency               normalized")
    for one in result.methods:
        normalized = "" if one.normalized is None else _interval(one.normalized)
        cells = [_interval(one.comprehensiveness).ljust(24), _interval(one.sufficiency).ljust(24), normalized]
        print(f"{one.method.ljust(width)}  {'  '.join(cells)}".rstrip())


def _interval(score: Score) -> str:
    return f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
