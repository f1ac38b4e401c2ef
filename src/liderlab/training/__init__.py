"""The loop and its parts: the only place that steps an optimizer."""
