"""What recording a call costs in JavaScript, beside OpenTelemetry's SDK: see `__main__`."""
