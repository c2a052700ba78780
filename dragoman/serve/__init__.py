"""The interpreter as a service: one process, one model, many streams over WebSockets."""
