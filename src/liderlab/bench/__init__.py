"""`lider bench`: how much time LiDER, the training loop and the regularisers take on this machine.

Ratios of times are held to limits here. The scripts in the repository's `benchmarks/` folder, which
is not installed, use the same workloads to make the tables and figures of the documentation.
"""
