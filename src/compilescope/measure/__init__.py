"""Numbers: tensors compared, backends held against each other, benchmarks."""
