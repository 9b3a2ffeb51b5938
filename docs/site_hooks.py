"""Pages of the site that are made when it is built: the lessons, the benchmarks, the contributing guide, the changelog.

With REGARD_RUN_LESSONS=1, as `make docs` sets it, the lessons run, and their outputs and pictures are on their pages.
They are kept in build/lessons until the lesson changes. Without it, lessons that have not run have no outputs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from regard.lessons.catalog import Lesson, all_lessons
from regard.lessons.page import KINDS, Code, Page, Text, read_page
from regard.lessons.run import DOTS_PER_INCH, run_page

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "lessons"
SCREEN_DOTS = 96
COPIED = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
WORKER = "https://unpkg.com/iframe-worker/shim"
Outputs = list[dict[str, Any]]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the lessons to the navigation."""
    for section in config.nav or []:
        if "Lessons" in section:
            section["Lessons"] += [
                {f"{lesson.number}. {short_title(lesson)}": page_path(lesson)} for lesson in all_lessons()
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and their pictures."""
    for lesson in all_lessons():
        page = read_page(lesson)
        outputs = lesson_outputs(page)
        files.append(File.generated(config, page_path(lesson), content=lesson_markdown(page, outputs)))
    for source, target in COPIED.items():
        files.append(File.generated(config, target, content=copied_page(ROOT / source)))
    for picture in sorted((ROOT / "benchmarks" / "results").glob("*.png")):
        files.append(File.generated(config, f"results/{picture.name}", content=picture.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links from docs/ to pages of the repository lead to their copies on the site."""
    for source, target in COPIED.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    return markdown


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    """Load nothing from other hosts: the theme's script for search in files is replaced by our own."""
    return local_worker(output, page.file.dest_uri.count("/"))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for the page of errors."""
    return local_worker(output_content, 0)


def local_worker(html: str, depth: int) -> str:
    return html.replace(WORKER, f"{'../' * depth}offline-worker.js")


def page_path(lesson: Lesson) -> str:
    return f"lessons/{lesson.stem}.md"


def short_title(lesson: Lesson) -> str:
    """The title up to its colon."""
    return lesson.title.partition(":")[0]


def lesson_outputs(page: Page) -> Outputs | None:
    """What each block printed and drew, from the cache or from a run; None if it has not run."""
    digest = hashlib.sha256(page.lesson.path.read_bytes()).hexdigest()[:16]
    cached = CACHE / f"{page.lesson.stem}-{digest}.json"
    if cached.exists():
        stored: Outputs = json.loads(cached.read_text(encoding="utf-8"))
        return stored
    if os.environ.get("REGARD_RUN_LESSONS") != "1":
        return None
    blocks = run_page(page).blocks
    outputs = [
        {"output": block.output, "figures": [base64.b64encode(figure).decode() for figure in block.figures]}
        for block in blocks
    ]
    CACHE.mkdir(parents=True, exist_ok=True)
    cached.write_text(json.dumps(outputs), encoding="utf-8")
    return outputs


def lesson_markdown(page: Page, outputs: Outputs | None) -> str:
    """The page as Markdown for the site: code, outputs and pictures; checks and solutions folded."""
    parts = []
    results = iter(outputs or [])
    for part in page.parts:
        if isinstance(part, Text):
            parts.append(part.markdown)
        else:
            parts.append(block_markdown(part, next(results, None), page.lesson.title))
    lessons = all_lessons()
    number = page.lesson.number
    command = f"regard lesson {number}"
    about = (
        f"*Lesson {number} of {len(lessons)}. Run it yourself: `{command}`, or `{command} --notebook lesson.ipynb`.*"
    )
    title, rest = parts[0].partition("\n")[::2]
    return "\n\n".join([title, about, rest, *parts[1:]])


def block_markdown(code: Code, result: dict[str, Any] | None, title: str) -> str:
    lines = ["```python", code.source.rstrip(), "```"]
    if result is not None and result["output"]:
        lines += ["", "``` { .text .output }", result["output"].rstrip(), "```"]
    for figure in result["figures"] if result is not None else ():
        width = int.from_bytes(base64.b64decode(figure)[16:20], "big") * SCREEN_DOTS // DOTS_PER_INCH
        lines += [
            "",
            f'<img class="figure" width="{width}" alt="figure: {title}" src="data:image/png;base64,{figure}">',
        ]
    if code.kind == "example":
        return "\n".join(lines)
    folded = "\n".join(f"    {line}".rstrip() for line in "\n".join(lines).splitlines())
    return f'??? note "{KINDS[code.kind]}"\n\n{folded}'


def copied_page(path: Path) -> str:
    """A page of the repository, with links that work on the site."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\]\(\.\./docs/", "](", text)
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(
        r"\[([^\]]+)\]\((?!https?://|#|results/[\w-]+\.png|[\w-]+\.md)[^)]+\)|\[([^\]]+)\]\(LOG\.md\)", r"`\1\2`", text
    )
