"""Before all tests: the processor's instructions, Ctrl-C, and which modules are collected."""

import os
import signal
from importlib.util import find_spec

# Before torch is imported: some virtual machines announce AMX and stop at its first instruction
# (bfloat16 products).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# A shell without job control starts background commands, and all below them, deaf to Ctrl-C, and
# tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules for frameworks that are not installed are not collected.
collect_ignore = [] if find_spec("avalanche") else ["src/liderlab/integrations/avalanche.py"]
