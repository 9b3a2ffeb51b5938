"""What is known about a training, as one HTML page and as a model card."""
