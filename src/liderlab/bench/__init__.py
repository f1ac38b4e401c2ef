"""How fast it is: contestants side by side, ratios of their times."""
