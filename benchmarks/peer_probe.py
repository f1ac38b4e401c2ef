"""Run a lab's command and write down when each of its optimizer steps ends.

    python peer_probe.py TIMES FOLDER SCRIPT|-m MODULE [ARGUMENT …]

TIMES gets one line a step: seconds since PROBE_START (an environment variable) by the wall clock,
and processor seconds of this process. torch calls the probe after every step of an optimizer, so
that no peer is changed. FOLDER: where the lab's command runs.
"""

import json
import os
import runpy
import sys
import time
from typing import Any


def main() -> None:
    times, folder, *command = sys.argv[1:]
    start, record = float(os.environ["PROBE_START"]), open(times, "w", buffering=1)  # noqa: SIM115

    def note(*_: Any) -> None:
        print(json.dumps([time.time() - start, time.process_time()]), file=record)

    os.chdir(folder)
    if command[:2] == ["-m", "liderlab"]:  # torch's hooks would load the compiler, which it leaves
        from liderlab.training import learner

        plain = learner.eager_step
        learner.eager_step = lambda optimizer: (plain(optimizer), note())[0]
    else:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(note)
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = command, folder
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main()
