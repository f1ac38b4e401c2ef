"""iCaRL: incremental classifier and representation learning (Rebuffi et al., 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import UserError, check_numbers
from ..functional.losses import binary_cross_entropy, incremental_targets
from ..functional.sampling import herding_order, rank_in_class
from ..types import Batch, Concat, Fit, Recipe, Source, Stream, Task, Terms
from .base import Method
from .nearest_mean import NearestMean, unit

if TYPE_CHECKING:
    from ..backbones.network import Network
    from ..memory import Memory
    from ..training.step import Step

BATCH = 256


class ICaRL(Method):
    """L = 1/s Σ_{c<s} BCE(σ(f_c(x)), t_c) + l2 · ‖θ‖²

    x: rows of the task and exemplars of past tasks, in one set. s: classes seen so far. t_c: for
    classes of past tasks the score of the network at the last task's end, σ(f*_c(x)); for the
    current task's the label, one-hot.

    At the end of a task each class has ⌊|M|/s⌋ exemplars: past classes drop the last ones of their
    order, new classes choose theirs by herding. An image is assigned to the class whose exemplars
    have the nearest mean feature.

    Args:
        l2: weight of the sum of squares of all parameters.
        normalize: scale features to length 1, for herding and means (and the means again), as in
            the paper; False takes them as they are.
    """

    rehearsal = True
    policy = "herding"
    new_classes = True
    paper = "Rebuffi et al., iCaRL: Incremental Classifier and Representation Learning"
    year = 2017
    heads = ("all", "seen")  # its loss runs over the classes seen
    previous: Network
    means: Tensor
    known: Tensor

    def __init__(self, l2: float = 1e-5, normalize: bool = True) -> None:
        super().__init__()
        check_numbers(l2=l2, at_least=0)
        self.l2, self.normalize = l2, normalize

    def attach(self, network: Network, example: Tensor) -> None:
        self.previous = network.frozen_copy()
        classes, width = self.previous(example).shape[1], self.previous.features(example).shape[1]
        self.register_buffer("means", example.new_zeros(classes, width))
        self.register_buffer("known", torch.zeros(classes, dtype=torch.bool, device=example.device))

    def plan(
        self, task: Task, stream: Stream, recipe: Recipe, epochs: int, memory: Memory
    ) -> list[Fit]:
        if memory.size < len(stream.names):
            raise UserError(
                f"icarl keeps exemplars of every class and there are {len(stream.names)}: "
                f"a buffer of that size or more, not {memory.size}"
            )
        return [Fit(Concat((task.train, memory)), epochs, recipe)]

    def losses(self, batch: Batch, step: Step) -> Terms:
        past, seen = step.past, step.seen
        logits = step.net(batch)[:, :seen]
        old = logits.new_zeros(len(batch), past)
        if past and len(batch):
            step.count(len(batch))
            old = self.previous(batch.x)[:, :past].sigmoid()
        terms = {"bce": binary_cross_entropy(logits, incremental_targets(batch.y, seen, old))}
        if self.l2 > 0:
            squares = [p.square().sum() for p in step.network.parameters() if p.requires_grad]
            terms["l2"] = self.l2 * torch.stack(squares).sum()
        return terms

    def end_task(self, step: Step) -> None:
        self.previous.load_state_dict(step.network.state_dict())
        self.previous.eval()
        self._choose_exemplars(step)
        self._take_means(step)

    def _choose_exemplars(self, step: Step) -> None:
        memory, data = step.memory, step.task.train
        share = memory.size // step.seen
        stored = torch.arange(len(memory))
        kept = stored[rank_in_class(memory.read("y", stored), -stored) < share]
        features, y = self._features(data, step)
        chosen = []
        for c in step.task.classes:
            members = (y == c).nonzero()[:, 0]
            chosen.append(members[herding_order(features[members], share)])
        rows = data.rows(torch.cat(chosen))
        memory.rebuild(kept, x=rows["x"], y=rows["y"], task=rows["task"])

    def _take_means(self, step: Step) -> None:
        features, y = self._features(step.memory, step)
        self.known.zero_()
        for c in y.unique():
            mean = features[y == c].mean(0)
            self.means[c] = F.normalize(mean, dim=0) if self.normalize else mean
            self.known[c] = True

    @torch.no_grad()
    def _features(self, data: Source, step: Step) -> tuple[Tensor, Tensor]:
        """Features (n, d) of the network at the task's end, in eval mode, and labels (n,)."""
        features, labels = [torch.zeros(0, self.means.shape[1])], [torch.zeros(0).long()]
        for index in torch.arange(len(data)).split(BATCH):
            batch = step.batch(data.rows(index), None)
            features.append(unit(self.previous.features(batch.x), self.normalize).cpu())
            labels.append(batch.y.cpu())
        return torch.cat(features), torch.cat(labels)

    def classifier(self, network: Network) -> nn.Module:
        return NearestMean(network, self.means, self.known, self.normalize)
