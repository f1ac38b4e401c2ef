"""Many runs: sweeps and hyperparameter searches, on one machine or many.

    planned runs ──▶ Scheduler ──▶ Engine: local processes, Ray or Slurm ──▶ worker.execute(job)
                         ▲                                                        │
                         └─────────── results and errors in the run folders ◀─────┘

An engine starts runs and reports which have ended. The scheduler decides which runs to start,
restart and skip, by the same rules on every engine.
"""
