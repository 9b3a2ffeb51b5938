"""Other servers of the same model, each as its documentation shows it.

`serve_peers.py plain MODEL embed PORT` answers POST /embed, with `predict` POST /predict; `litserve` does the same.
infinity-emb has a command of its own, see `serve.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import torch
import transformers


class Pipeline:
    """A tokenizer and a network of transformers: padded batches, mean pooling for vectors."""

    def __init__(self, folder: str, kind: str) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.kind = kind
        loader = transformers.AutoModel if kind == "embed" else transformers.AutoModelForSequenceClassification
        self.network = loader.from_pretrained(folder).eval()

    @torch.inference_mode()
    def __call__(self, texts: list[str]) -> list[dict[str, Any]]:
        batch = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        if self.kind == "predict":
            scores = self.network(**batch).logits.softmax(-1)
            return [{"label": int(row.argmax()), "score": float(row.max())} for row in scores]
        hidden = self.network(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        vectors = (hidden * mask).sum(1) / mask.sum(1)
        return [{"embedding": row} for row in vectors.tolist()]


def plain(folder: str, kind: str, port: int) -> None:
    """transformers behind FastAPI: one text after the other, in FastAPI's threads."""
    import uvicorn
    from fastapi import Body, FastAPI

    app, pipeline = FastAPI(), Pipeline(folder, kind)

    @app.post(f"/{kind}")
    def answer(text: str = Body(embed=True)) -> dict[str, Any]:
        return pipeline([text])[0]

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if importlib.util.find_spec("litserve") is not None:
    import litserve

    class LitApi(litserve.LitAPI):  # type: ignore[misc]  # at the top level: LitServe starts processes with it
        """The same pipeline in LitServe."""

        folder, kind = "", "embed"

        def setup(self, device: str) -> None:
            self.pipeline = Pipeline(self.folder, self.kind)

        def decode_request(self, request):  # type: ignore[no-untyped-def]  # it would read the type as a schema
            return str(request["text"])

        def predict(self, texts: list[str]) -> list[dict[str, Any]]:
            return self.pipeline(texts)

        def encode_response(self, output: dict[str, Any]) -> dict[str, Any]:
            return output


def batched(folder: str, kind: str, port: int) -> None:
    """LitServe with dynamic batches."""
    api = LitApi(max_batch_size=32, batch_timeout=0.005, api_path=f"/{kind}")
    api.folder, api.kind = folder, kind
    litserve.LitServer(api, accelerator="cpu").run(host="127.0.0.1", port=port, generate_client_file=False)


if __name__ == "__main__":
    {"plain": plain, "litserve": batched}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
