"""The compilation under way, what was compiled before it, and settings of torch's compilers."""
