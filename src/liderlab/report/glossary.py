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
        "For each task but the last: its best earlier accuracy minus its accuracy at the end; "
        "averaged over these tasks. Negative: accuracy rose.",
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
        "The mean accuracy on the tasks so far, after every task; averaged over the whole stream.",
    ),
}

ANYTIME = {
    "min_acc": Metric(
        "min-ACC",
        "minimum accuracy",
        +1,
        "The lowest accuracy on each task but the last at any moment after it was learned, "
        "averaged over these tasks. Far below the accuracy at the ends of tasks: a stability gap.",
    ),
    "wc_acc": Metric(
        "WC-ACC",
        "worst-case accuracy",
        +1,
        "The final accuracy on the last task and the minimum accuracy of each earlier one, "
        "averaged over all tasks.",
    ),
    "aaa": Metric(
        "AAA",
        "average anytime accuracy",
        +1,
        "The mean accuracy on the tasks so far, averaged over all moments of measurement.",
    ),
}
"""Metrics of runs that were evaluated during tasks (--evaluate every:50), on a part of the test
images."""

TERMS = {
    "class-incremental": "The network chooses among all classes seen so far.",
    "domain-incremental": "Tasks differ in their domain and share their classes, among which the "
    "network chooses. These accuracies stand where others have class-incremental ones.",
    "task-incremental": "The network knows the task and chooses among its classes only.",
    "mean ± std": "Mean and sample standard deviation over runs that differ in their seeds.",
    "best": "The best mean of its setting (benchmark, tasks, buffer, backbone, scale), and "
    "distinguishable from every other row there: the 95 % interval of the difference, paired by "
    "seed, excludes 0. The upper bound joint does not compete.",
    "gain": "Final average accuracy with a regulariser minus that without it, paired by seed: the "
    "mean difference and Student's 95 % interval. If the interval contains 0, these seeds do not "
    "show whether the regulariser helps.",
    "paper": "The number that the paper reports for this row, at full scale.",
    "ledger": "FAA of the same configuration in the project's reproduction ledger (lider ledger): "
    "mean ± standard deviation, with the number of seeds.",
    "scale": "full: the experiment as configured. smoke and cpu: smaller versions, with fewer "
    "epochs and images and a narrower network; do not compare their numbers with the paper's.",
    "buffer": "The number of samples that the memory can hold.",
    "seeds": "The number of seeds that have finished. If a seed was run more than once, the mean "
    "of its runs counts.",
    "anytime accuracy": "Accuracy on the same few test images of every task seen, every so many "
    "steps (--evaluate every:50). A drop at the start of a task that recovers is a stability gap.",
    "accuracy matrix": "Row t, column i: accuracy on task i after training task t, in percent.",
    "confusion": "Row i, column j: test images of class (or task) i that the network took for j "
    "at the end, among all classes seen, in percent of row i. Colours follow the square root, so "
    "that rare mistakes show.",
    "forgetting": "Of a task: its best accuracy so far minus its accuracy now.",
    "loss terms": "The weighted terms of the loss at the logged steps. Where a point stands for "
    "many steps, the line is their mean and the band runs from their minimum to their maximum.",
    "λ and c": "λ: the estimated Lipschitz constant of a stage of the network, on the samples that "
    "LiDER regularises. c: its target, which is learned. LiDER adds α·|λ − c| + β·|λ|.",
    "memory": "The samples in memory at the last checkpoint, by task and stored label.",
    "poisoned": "A sample that entered the memory with a wrong label, on purpose.",
    "edited": "A sample whose pixels GMED has changed; the number says how often.",
    "buffer-vs-test gap": "Accuracy on the samples in memory (against their stored labels) minus "
    "accuracy on test images, both among all classes seen and averaged over the tasks so far. A "
    "wide gap means that the network has memorised its samples.",
}
