"""The routes for texts: one function per route, each from a checked body to answers."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.errors import InputError
from regard.serve.http import schemas
from regard.serve.http.answering import ClientLeft, compute
from regard.serve.http.bulk import answer_lines
from regard.serve.http.streaming import stream_generation
from regard.serve.model_table import ModelTable, ServedModel
from regard.serve.model_worker import Computed
from regard.serve.operations.text_by_text import tokenized

router = APIRouter()


@router.post("/predict", summary="Answers of the model's task: classes, entities, answers, translations")
async def predict(request: Request, body: schemas.PredictBody) -> Response:
    return await answer(request, body, "predict", abstain=body.abstain)


@router.post("/embed", summary="One vector per text")
async def embed(request: Request, body: schemas.EmbedBody) -> Response:
    return await answer(request, body, "embed", layer=body.layer, pooling=body.pooling, normalize=body.normalize)


@router.post("/fill", summary="The most likely words for each [MASK]")
async def fill(request: Request, body: schemas.FillBody) -> Response:
    return await answer(request, body, "fill", top=body.top)


@router.post("/answer", summary="Answers to questions about a context")
async def answer_questions(request: Request, body: schemas.AnswerBody) -> Response:
    return await answer(request, body, "answer", abstain=body.abstain)


@router.post("/explain", summary="How much each word contributed to the answer")
async def explain(request: Request, body: schemas.ExplainBody) -> Response:
    return await answer(request, body, "explain", method=body.method, target=body.target)


@router.post("/translate", summary="Translations of texts")
async def translate(request: Request, body: schemas.TranslateBody) -> Response:
    return await answer(request, body, "translate", alignment=body.alignment, prefix=body.prefix, **body.decoding())


@router.post("/generate", summary="Continuations of prompts")
async def generate(request: Request, body: schemas.GenerateBody) -> Response:
    options = {} if body.slide is None else {"slide": body.slide}
    if body.stream:
        table: ModelTable = request.app.state.table
        return await stream_generation(table, body.model, body.items(), **options, **body.decoding())
    return await answer(request, body, "generate", **options, **body.decoding())


@router.post("/bulk", summary="Many inputs as JSON lines, answered as JSON lines in order")
async def bulk(request: Request, route: str = "predict", model: str | None = None) -> Response:
    table: ModelTable = request.app.state.table
    return await answer_lines(request, table, model, route.removeprefix("/"))


@router.post("/tokenize", summary="Tokens of texts with ids and offsets")
async def tokenize(request: Request, body: schemas.TokenizeBody) -> Response:
    table, served = _served(request, body)
    items = body.items()
    characters, limit = sum(map(len, items)), table.limits.max_body_bytes
    if characters > limit or len(items) > table.limits.max_texts:
        raise InputError(f"the request has {len(items):,} texts, expected at most {table.limits.max_texts:,}.")
    answers = await asyncio.to_thread(lambda: [tokenized(served.model, item, special=body.special) for item in items])
    return JSONResponse({"model": served.name, "answers": answers})


@router.post("/v1/embeddings", summary="Embeddings as OpenAI's API has them, of length 1")
async def openai_embeddings(request: Request, body: schemas.OpenAIEmbeddingsBody) -> Response:
    try:
        served, results = await _computed(request, body, "embed", normalize=True)
    except ClientLeft:
        return Response(status_code=204)
    tokens = sum(result.tokens for result in results if result is not None)
    data = []
    for index, result in enumerate(results):
        assert result is not None
        answer = dict(result.answer)
        if body.encoding_format == "base64":
            vector = answer["embedding"]
            answer["embedding"] = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, **answer})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": served.name, "usage": usage})


async def answer(request: Request, body: Any, kind: str, **options: Any) -> Response:
    """The answers for the items of a body; None for those that failed, if `on_error` is "null"."""
    try:
        served, results = await _computed(request, body, kind, **options)
    except ClientLeft:
        return Response(status_code=204)  # no one reads it
    answers = [None if result is None else result.answer for result in results]
    return JSONResponse({"model": served.name, "answers": answers})


async def _computed(
    request: Request, body: Any, kind: str, **options: Any
) -> tuple[ServedModel, Sequence[Computed | None]]:
    table: ModelTable = request.app.state.table
    chosen = {name: value for name, value in options.items() if value is not None}
    on_error = getattr(body, "on_error", "fail")
    return await compute(request, table, body.model, kind, body.items(), on_error=on_error, **chosen)


def _served(request: Request, body: schemas.Body) -> tuple[ModelTable, ServedModel]:
    table: ModelTable = request.app.state.table
    return table, table.get(body.model)
