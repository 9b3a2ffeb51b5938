"""How good answers are: scores, entities, answers to questions, and how sure one can be of them. Needs numpy only."""
