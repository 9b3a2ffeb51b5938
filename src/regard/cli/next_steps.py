"""The last lines of a training: where its report is, and commands for the model."""

from __future__ import annotations


def report_row(folder: str, task: str) -> tuple[str, str]:
    """Where the report of a training is, and what it has."""
    from regard.tasks import task_class

    errors = ", likely label errors" if task_class(task).has_labels() else ""
    return "report", f"{folder}/report.html: scores, mistakes{errors}; open it in a browser"


def next_rows(folder: str, task: str) -> list[tuple[str, str]]:
    """Commands that use the model and score it."""
    from regard.tasks import task_class

    kind = task_class(task)
    return [
        ("next", f"regard {kind.command} {folder} {kind.command_example}"),
        ("", f"regard evaluate {folder} TEST-DATA"),
    ]
