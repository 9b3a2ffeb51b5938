"""Tasks of language models: they predict tokens of plain text."""
