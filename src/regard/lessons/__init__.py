"""Lessons from counting words to serving BERT: Markdown pages whose code runs, draws and is tested.

A lesson is a file in `pages/`. `catalog` lists them, `page` parses one, `run` executes its code in order, `html` and
`notebook` write it as a single page or as a Jupyter notebook. `regard lesson` is the command.
"""
