"""The FastAPI application: routes, request schemas, limits and errors. It needs the extra `serve`."""
