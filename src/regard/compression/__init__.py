"""The smallest model that keeps the score: int8, pruning, distillation, each measured on this machine."""
