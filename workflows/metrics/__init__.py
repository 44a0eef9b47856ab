"""What Kampong counts about itself (docs/operations.md). The text for Prometheus is made at the surface."""
