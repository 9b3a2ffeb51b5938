"""The HTTP server of `regard serve`: every task that `predict` knows, with batches by tokens and strict limits.

`batcher.py` decides what runs together and knows no model and no thread; `model_worker.py` runs it for one model;
`process/` does so in a process of its own, which is replaced if it dies; `http/` is the FastAPI application, the only
part that needs the extra `serve`.
"""
