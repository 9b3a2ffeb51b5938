"""Training on several devices: the ranks, and weights that are split over them."""
