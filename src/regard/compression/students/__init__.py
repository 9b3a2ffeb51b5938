"""Smaller networks that start from the weights of a larger one, never from random ones."""
