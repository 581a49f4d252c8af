"""What Dynamo writes to its log, record by record, into events."""
