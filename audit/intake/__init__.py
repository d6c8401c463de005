"""Taking in: events from executors, spans from OpenTelemetry."""
