"""One choke point of torch a file. Each carries a HOOK."""
