"""Default settings of a training: chosen from its data, its task and its model, and explained in words."""
