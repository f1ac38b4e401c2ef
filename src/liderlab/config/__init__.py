"""The configuration of a run: its fields, where their values come from, and its presets."""
