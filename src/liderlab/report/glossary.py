"""Metrics and terms with their definitions, as every view shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """better: +1 if a higher value is better, −1 if a lower one is."""

    label: str
    name: str
    better: int
    definition: str

    @property
    def arrow(self) -> str:
        return "↑" if self.better > 0 else "↓"


SETTINGS = {"class_incremental": "class-incremental", "task_incremental": "task-incremental"}

METRICS = {
    "faa": Metric(
        "FAA",
        "final average accuracy",
        +1,
        "Mean accuracy over all tasks after the last one has been trained.",
    ),
    "ff": Metric(
        "FF",
        "final forgetting",
        -1,
        "How much each task but the last lost: its best accuracy at any earlier time minus its "
        "accuracy at the end, averaged over tasks. Negative: it got better.",
    ),
    "bwt": Metric(
        "BWT",
        "backward transfer",
        +1,
        "Accuracy of each task but the last at the end minus its accuracy just after it was "
        "trained, averaged over tasks. Below zero: forgetting.",
    ),
    "fwt": Metric(
        "FWT",
        "forward transfer",
        +1,
        "Accuracy on each task just before it is trained minus that of the untrained network, "
        "averaged over all tasks but the first. Not defined where only seen classes are predicted.",
    ),
    "aia": Metric(
        "AIA",
        "average incremental accuracy",
        +1,
        "After every task, the mean accuracy on the tasks so far; averaged over the whole stream.",
    ),
}

TERMS = {
    "class-incremental": "The network chooses among all classes seen so far.",
    "task-incremental": "The network is told the task and chooses among its classes only.",
    "mean ± std": "Mean and sample standard deviation over the runs, which differ in their seeds.",
    "best": "The best mean of its setting (benchmark, tasks, buffer, backbone, scale). "
    "The upper bound joint does not compete.",
    "LiDER adds": "The metric with LiDER minus the same method's without, seed by seed: mean, and "
    "its 95 % interval by Student's t over the seeds that both have. An interval that holds 0 "
    "leaves it open whether LiDER helped.",
    "paper": "What the paper reports for this row, measured at full scale by its authors.",
    "ledger": "What the project's reproduction ledger (lider ledger) has for this very "
    "configuration: mean ± standard deviation of FAA over its seeds.",
    "scale": "full: as configured. smoke and cpu are smaller versions of an experiment (fewer "
    "epochs and images, a narrower network): their numbers cannot be held against the paper's.",
    "buffer": "How many samples the memory can hold.",
    "seeds": "How many seeds the row is made of, finished ones only; where one was run more than "
    "once, the mean counts.",
    "accuracy matrix": "Row t, column i: accuracy on task i after training task t, in percent.",
    "forgetting": "Of a task: its best accuracy so far minus its accuracy now.",
    "loss terms": "What the optimizer adds up, as weighted, at the logged steps. Where many steps "
    "share a point, the line is their mean and the band runs from their least to their greatest.",
    "λ and c": "λ: the estimated Lipschitz constant of a stage of the network on the samples "
    "LiDER hears. c: the target it is held to, itself learned. LiDER adds α·|λ − c| + β·|λ|.",
    "memory": "What is in the rehearsal memory at the last checkpoint, by task and stored label.",
    "poisoned": "Its label was replaced on purpose as it entered the memory: it is wrong.",
    "edited": "GMED has changed its pixels; the number says how often.",
    "buffer-vs-test gap": "Accuracy on the samples in memory (against their stored labels) minus "
    "accuracy on test images, both class-incremental and averaged over the tasks so far. A wide "
    "gap means that the network knows its memory by heart.",
}
