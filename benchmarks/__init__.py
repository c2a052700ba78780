"""Speed, measured: each file exposes run()."""
