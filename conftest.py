"""Modules for frameworks that are not installed are not collected."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("avalanche") else ["src/liderlab/integrations/avalanche.py"]
