"""How much each word of a text contributed to an answer, by several methods."""
