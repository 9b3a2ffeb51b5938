"""A lesson as one HTML file that opens offline: text, highlighted code, outputs and pictures, light and dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from regard.data.atomic import atomic_text_file
from regard.lessons.catalog import all_lessons
from regard.lessons.page import KINDS, Text
from regard.lessons.run import DOTS_PER_INCH, BlockResult, PageResult
from regard.lessons.style import STYLE
from regard.report.elements import html_page

SCREEN_DOTS = 96  # CSS pixels of an inch
HEADING = re.compile(r"^# (.*)\n?", re.MULTILINE)


def write_html(result: PageResult, path: Path) -> Path:
    """Write the page of a lesson that has run."""
    with atomic_text_file(path) as file:
        file.write(lesson_html(result))
    return path


def lesson_html(result: PageResult) -> str:
    """The whole page; it loads nothing."""
    lesson = result.page.lesson
    blocks = iter(result.blocks)
    to_html = _markdown_renderer()
    parts = []
    for part in result.page.parts:
        if isinstance(part, Text):
            parts.append(to_html(HEADING.sub("", part.markdown, count=1)))
        else:
            parts.append(_block(next(blocks), lesson.title))
    head = f'<header><p class="faint">regard · lesson {lesson.number}</p><h1>{escape(lesson.title)}</h1></header>'
    content = f"<style>{STYLE}{_highlight_style()}</style>{head}<article>{''.join(parts)}</article>{_footer(result)}"
    return html_page(f"Lesson {lesson.number}: {lesson.title}", content)


def _markdown_renderer() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").render


def _block(result: BlockResult, title: str) -> str:
    parts = [f'<pre class="code"><code>{_highlight(result.code.source)}</code></pre>']
    if result.output:
        parts.append(f'<pre class="output">{escape(result.output.rstrip())}</pre>')
    parts += [_picture(png, title) for png in result.figures]
    content = "".join(parts)
    if result.code.kind == "example":
        return f'<div class="block">{content}</div>'
    return f'<details class="{result.code.kind}"><summary>{KINDS[result.code.kind]}</summary>{content}</details>'


def _picture(png: bytes, title: str) -> str:
    width = int.from_bytes(png[16:20], "big") * SCREEN_DOTS // DOTS_PER_INCH
    data = base64.b64encode(png).decode()
    name = escape(f"figure: {title}")
    return f'<p class="picture"><img width="{width}" alt="{name}" src="data:image/png;base64,{data}"/></p>'


def _highlight(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return str(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def _highlight_style() -> str:
    """Colors of code on a light page, and on a dark one."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="default").get_style_defs("pre.code")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre.code")
    keep = re.compile(r"^pre\.code \.\w+ \{.*$", re.MULTILINE)  # without backgrounds and line numbers
    return "\n".join([*keep.findall(light), "@media (prefers-color-scheme: dark) {", *keep.findall(dark), "}"])


def _footer(result: PageResult) -> str:
    lesson = result.page.lesson
    after = next((other for other in all_lessons() if other.number > lesson.number), None)
    following = f" · next: <code>regard lesson {after.number}</code>, {escape(after.title)}" if after else ""
    seconds = sum(block.seconds for block in result.blocks)
    return (
        f'<footer class="faint small">Every block of this page ran in order, in {seconds:.0f} s. As a notebook: '
        f"<code>regard lesson {lesson.number} --notebook FILE.ipynb</code>{following}</footer>"
    )
