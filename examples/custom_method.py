"""Your own method in one class: replay of well-classified batches, with LiDER or without.

python custom_method.py
lider run --import custom_method.py --method confident-replay --lider
"""

from torch.nn.functional import cross_entropy

from liderlab import METHODS, Batch, Method, Step, run
from liderlab.config.merging import make_config
from liderlab.registry import Entry


class ConfidentReplay(Method):
    """L = CE(f(x), y) + w · CE(f(x'), y'); batches that are mostly classified right are stored."""

    rehearsal = True

    def __init__(self, weight: float = 1.0) -> None:  # an option: --set method.weight=2
        super().__init__()
        self.weight = weight

    def losses(self, batch: Batch, step: Step) -> dict:
        logits = step.net(batch)
        terms = {"stream": cross_entropy(logits, batch.y, reduction="none")}
        if replay := step.draw():
            loss = cross_entropy(step.net(replay), replay.y, reduction="none")
            terms["replay"] = self.weight * loss
        # gather: ranks that share the batch must come to the same decision
        right = step.gather(batch, right=logits.argmax(1) == batch.y)["right"]
        if right.float().mean() > 0.5:
            step.store(batch)
        return terms


METHODS["confident-replay"] = Entry(ConfidentReplay, "replay of well-classified batches")

if __name__ == "__main__":
    for regularizers in ({}, {"lider": {"alpha": 0.1, "beta": 0.3}}):
        config = make_config(
            {
                "benchmark": "synthetic",
                "method": {"name": "confident-replay", "weight": 0.5},
                "regularizers": regularizers,
                "memory": {"size": 50},
                "training": {"epochs": 2},
            }
        )
        result = run(config, f"runs/confident{'-lider' if regularizers else ''}")
        faa = result["class_incremental"]["faa"]
        print(f"{'with' if regularizers else 'without'} LiDER: final accuracy {faa:.1f} %")
