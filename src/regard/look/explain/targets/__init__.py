"""What can be explained: a class, a tag, an answer, a word, a similarity. One file per kind."""
