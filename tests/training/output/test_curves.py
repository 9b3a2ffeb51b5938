"""What is in the picture of a training."""

import sys
import threading

import pytest
from matplotlib.figure import Figure

from regard.training.output.curves import draw_curves, import_in_background


def line(step, **scores):
    main = next(iter(scores))
    return {"kind": "score", "step": step, "dev_loss": 1 / step, "main": main, "best": True, "scores": scores}


@pytest.fixture
def draw_axes(monkeypatch, tmp_path):
    """Draws these lines, and gives the axes of scores back."""

    def draw(lines, **settings):
        figures = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
        draw_curves(lines, tmp_path / "curves.png", **settings)
        return figures[0].axes if figures else []

    return draw


LOGS = [{"kind": "log", "step": step, "loss": 1 / step} for step in (1, 2, 3)]


def test_scores_of_one_kind_share_a_plot_with_their_baselines(draw_axes):
    scores = [line(step, masked_accuracy=step / 10, perplexity=9.0, next_accuracy=0.5) for step in (1, 2)]
    _, axis = draw_axes([*LOGS, *scores], baseline={"masked_accuracy": 0.06, "next_accuracy": 0.51, "perplexity": 99.0})
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["masked accuracy", "next accuracy"]
    messages = [text.get_text() for text in axis.texts]
    assert messages == ["unigram baseline 0.060", "unigram baseline 0.510", "written: 0.2000"]


@pytest.mark.parametrize(
    "scores",
    [
        {"accuracy": 0.5, "macro_f1": 0.4, "f1": 0.3, "mcc": 0.2},
        {"pearson": 0.5, "spearman": 0.4, "mse": 812.0},
        {"micro_f1": 0.5, "accuracy": 0.4},
    ],
)
def test_one_score_has_its_name_above_it(draw_axes, scores):
    """Scores of other kinds have other scales: they are not drawn with it."""
    _, axis = draw_axes([*LOGS, line(2, **scores)])
    assert axis.get_title() == "dev " + next(iter(scores)).replace("_", " ")
    assert axis.get_legend() is None
    assert axis.lines[0].get_ydata() == [0.5]


def test_a_score_that_is_not_always_there_is_plotted_where_it_is(draw_axes):
    scores = [line(1, masked_accuracy=0.1), line(2, masked_accuracy=0.2, next_accuracy=0.5)]
    _, axis = draw_axes([*LOGS, *scores])
    assert [len(one.get_xdata()) for one in axis.lines[:2]] == [2, 1]


def test_without_scores_there_is_the_loss_alone_and_without_steps_nothing(draw_axes):
    assert len(draw_axes(LOGS)) == 1
    assert draw_axes([]) == []


def test_a_loss_that_is_not_known_is_left_out(draw_axes):
    axes = draw_axes([*LOGS, {"kind": "log", "step": 4, "loss": None}])
    assert len(axes[0].lines[0].get_xydata()) == 4


def test_matplotlib_can_be_imported_in_the_background() -> None:
    import_in_background()
    for thread in threading.enumerate():
        if thread.name == "regard-import":
            thread.join(timeout=60)
    assert "matplotlib.figure" in sys.modules
