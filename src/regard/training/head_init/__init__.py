"""What a new classification head starts from: a linear probe, with or without contrastive training before."""
