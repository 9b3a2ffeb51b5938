"""Networks that are trained from scratch: what can be changed in a preset."""
