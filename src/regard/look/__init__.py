"""Look inside a model: why it answered, what each layer predicts, what each head is worth."""
