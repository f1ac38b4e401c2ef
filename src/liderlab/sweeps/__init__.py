"""Many runs: sweeps and searches, on one machine or many.

    plans ──▶ Scheduler ──▶ Engine: local processes, Ray, or Slurm ──▶ worker.execute(job)
                  ▲                                                          │
                  └──────── what happened is in each run's folder ◀──────────┘

An engine starts runs and tells which have ended; everything else (what to start, what to start
again, what to skip) is the scheduler's, and the same for all engines.
"""
