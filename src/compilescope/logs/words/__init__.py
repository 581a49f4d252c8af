"""What PyTorch says in its logs, read back into the fields of the record: functions of text."""
