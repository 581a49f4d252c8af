"""What torch_xla writes: why each graph was compiled and executed, and dumps of graphs."""
