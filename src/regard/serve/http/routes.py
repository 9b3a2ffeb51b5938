"""The routes for texts: one function per route, each from a checked body to answers."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.serve.http import schemas
from regard.serve.http.answering import ClientLeft, compute
from regard.serve.http.streaming import stream_generation
from regard.serve.model_table import ModelTable
from regard.serve.served import Computed, Served

router = APIRouter()


@router.post("/predict", summary="Answers of the model's task: classes, entities, answers, translations")
async def predict(request: Request, body: schemas.PredictBody) -> Response:
    return await answer(request, body, "predict")


@router.post("/embed", summary="One vector per text")
async def embed(request: Request, body: schemas.EmbedBody) -> Response:
    return await answer(request, body, "embed")


@router.post("/fill", summary="The most likely words for each [MASK]")
async def fill(request: Request, body: schemas.FillBody) -> Response:
    return await answer(request, body, "fill")


@router.post("/answer", summary="Answers to questions about a context")
async def answer_questions(request: Request, body: schemas.AnswerBody) -> Response:
    return await answer(request, body, "answer")


@router.post("/explain", summary="How much each word contributed to the answer")
async def explain(request: Request, body: schemas.ExplainBody) -> Response:
    return await answer(request, body, "explain")


@router.post("/translate", summary="Translations of texts")
async def translate(request: Request, body: schemas.TranslateBody) -> Response:
    return await answer(request, body, "translate")


@router.post("/generate", summary="Continuations of prompts")
async def generate(request: Request, body: schemas.GenerateBody) -> Response:
    if body.stream:
        table: ModelTable = request.app.state.table
        return await stream_generation(table, body.model, body.items(), **body.options())
    return await answer(request, body, "generate")


@router.post("/tokenize", summary="Tokens of texts with ids and offsets")
async def tokenize(request: Request, body: schemas.TokenizeBody) -> Response:
    return await answer(request, body, "tokenize")


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


async def answer(request: Request, body: schemas.BatchBody, kind: str) -> Response:
    """The answers for the items of a body; None for those that failed, if `on_error` is "null"."""
    try:
        served, results = await _computed(request, body, kind, **body.options())
    except ClientLeft:
        return Response(status_code=204)  # no one reads it
    answers = ",".join("null" if result is None else result.text for result in results)
    content = f'{{"model":{json.dumps(served.name)},"answers":[{answers}]}}'
    return Response(content, media_type="application/json")


async def _computed(request: Request, body: Any, kind: str, **options: Any) -> tuple[Served, Sequence[Computed | None]]:
    table: ModelTable = request.app.state.table
    on_error = getattr(body, "on_error", "fail")
    return await compute(request, table, body.model, kind, body.items(), on_error=on_error, **options)
