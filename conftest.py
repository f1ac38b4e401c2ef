"""Before torch is imported: the processor's instructions, and which modules are collected."""

import os
from importlib.util import find_spec

# Some virtual machines announce AMX and stop at its first instruction (bfloat16 products).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# Modules for frameworks that are not installed are not collected.
collect_ignore = [] if find_spec("avalanche") else ["src/liderlab/integrations/avalanche.py"]
