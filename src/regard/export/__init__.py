"""Engines that run a trained network: int8 matrix products, and ONNX files with ONNX Runtime."""
