"""LiDER: Lipschitz-driven rehearsal (Bonicelli et al., NeurIPS 2022)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..errors import UserError, check_numbers, unknown
from ..functional.jacobian import jacobian_lipschitz
from ..functional.lipschitz import Reading, batch_lipschitz, spatial_lipschitz
from ..types import Batch, Terms
from . import spatial_maps
from .base import Regularizer
from .feature_recorder import INPUT, FeatureRecorder, Features
from .jacobian_pass import stage_maps
from .stages import default_stages, evaluating, unwrap
from .target_steps import TargetSteps

if TYPE_CHECKING:
    from ..distributed.team import Team
    from ..training.step import Step

log = logging.getLogger("liderlab")

TERMS = ("c_lip", "0_lip")
Estimator = Literal["spatial", "batch", "jacobian"]
ESTIMATORS = {
    "spatial": spatial_lipschitz,
    "batch": batch_lipschitz,
    "jacobian": jacobian_lipschitz,
}
CALIBRATION = 256
"""Samples to calibrate on in the lab: they take seconds, and the targets start within 2 % of their
value. The batch form's λ falls with the batch size, so there they start a few percent too low."""
CHOICES = {
    "estimator": tuple(ESTIMATORS),
    "reading": ("singular", "eigenvalue"),
    "weights": ("paper", "swapped"),
    "on": ("replay", "stream"),
    "rows": ("all", "past"),
    "draw": ("reuse", "fresh"),
}


class LiDER(Regularizer):
    r"""Keeps the Lipschitz constant λ_k of every stage near a learned target, and small.

        L_cLip  = 1/K Σ_k |λ_k − c_k|                    (Eq. 7)
        L_0Lip  = 1/K Σ_k |λ_k|                          (Eq. 8)
        L_LiDER = α · L_cLip + β · L_0Lip                (Eq. 9)

    λ_k is estimated between the feature maps of stage k−1 and stage k, for the samples that pass
    through the network inside `watch()`: in rehearsal, the replayed ones. The network's input is
    stage 0. The targets c_k are parameters (`targets`, used as relu(c_k)); they start at the mean
    λ_k of the samples given to `calibrate()`, or else of the first pass watched.

    Args:
        model: any network, also wrapped by DDP, Fabric or `torch.compile`. It is not registered as
            a submodule: `parameters()` yields the targets only.
        stages: module names in running order. The tensor tapped is the module's **output**; for
            this package's own backbones it is the stage's output **before its last ReLU**, as the
            authors did. None takes the backbone's own list, or finds stages among the network's
            children (the last one of each run of equally shaped maps), and logs them.
        alpha, beta: weights of the c-term and the 0-term; `weights="swapped"` exchanges the roles.
        estimator: "spatial" (per sample over positions or tokens, the released form), "batch" (Eq.
            6), or "jacobian" (the local constant of each sample, from an extra pass in eval mode;
            its λ grows with the weights, so choose other alpha and beta).
        reading: "singular" (σ) or "eigenvalue" (σ², as Eq. 6 prints it).
        iterations, tol: power-iteration steps at most, and the relative change that ends them
            early (0: never checked, so that no device is waited for). None decomposes exactly.
        learn_targets: False keeps the c_k at their start values (the paper's ablation).
        target_lr: learning rate of the targets in the lab, as a factor of the network's.
        from_input: False leaves the network's input out of the chain.
        on, rows, draw: which rows LiDER watches in the lab; in your own loop `watch()` decides.
            on="replay" | "stream"; rows="all" | "past" (of past tasks only); draw="reuse": the
            method's own passes, or "fresh": one extra draw and pass for each of the two terms, as
            released.

    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2))
    >>> lider = LiDER(model, stages=["0", "2"], alpha=0.1, beta=0.3)
    >>> lider.calibrate([torch.rand(16, 3, 8, 8)])
    >>> with lider.watch():
    ...     output = model(torch.rand(4, 3, 8, 8))
    >>> lider.penalty().requires_grad
    True
    """

    needs_memory = True
    off: ClassVar[Mapping[str, Any]] = {"alpha": 0.0, "beta": 0.0}
    paper = "Bonicelli et al."
    year = 2022
    targets: nn.Parameter | None
    calibrated: Tensor
    constants: Tensor

    def __init__(
        self,
        model: nn.Module | None = None,
        stages: Sequence[str] | None = None,
        alpha: float = 0.1,
        beta: float = 0.3,
        *,
        estimator: Estimator = "spatial",
        reading: Reading = "singular",
        weights: Literal["paper", "swapped"] = "paper",
        learn_targets: bool = True,
        iterations: int | None = 10,
        tol: float = 1e-6,
        from_input: bool = True,
        on: Literal["replay", "stream"] = "replay",
        rows: Literal["all", "past"] = "all",
        draw: Literal["reuse", "fresh"] = "reuse",
        target_lr: float = 1.0,
    ) -> None:
        super().__init__()
        chosen = (estimator, reading, weights, on, rows, draw)
        for (argument, allowed), value in zip(CHOICES.items(), chosen, strict=True):
            if value not in allowed:
                raise unknown(argument, str(value), allowed)
        check_numbers(alpha=alpha, beta=beta, tol=tol, at_least=0)
        check_numbers(target_lr=target_lr, at_least=0, at_most=1e38)  # float32
        check_numbers(iterations=iterations, at_least=1, whole=True)
        if draw == "fresh" and (on, rows) != ("replay", "all"):
            raise UserError(
                "draw='fresh' draws from the memory and watches all drawn rows: it goes with "
                f"on='replay' and rows='all', but got on={on!r} and rows={rows!r}."
            )
        if (on, rows) == ("stream", "past"):
            raise UserError(
                "rows='past' chooses among replayed rows, as the stream has the current task's "
                "alone: it goes with on='replay', but got on='stream'."
            )
        if isinstance(stages, str):
            raise ValueError(f"Expected a list of stages, [{stages!r}], but got {stages!r}.")
        self.alpha, self.beta, self.weights = alpha, beta, weights
        self.estimator, self.reading = estimator, reading
        self.iterations, self.tol = iterations, tol
        self.learn_targets, self.target_lr = learn_targets, target_lr
        self.from_input = from_input
        self.on, self.rows, self.draw = on, rows, draw
        self.stages = None if stages is None else list(stages)
        self._left_out: list[str] = []
        self._checked = False
        self._holder: tuple[nn.Module, ...] = ()
        self._recorder = FeatureRecorder()
        self._idle, self._warned = True, False  # idle: no watch() since the last penalty
        self._target_steps = TargetSteps()
        self._watched: list[Tensor] = []  # λ per pass: (n, K), or (1, K) for the batch form
        self._team: Team | None = None  # set if several ranks share the run
        self._last_terms: Terms = {}
        self.register_buffer("calibrated", torch.tensor(False))
        self._is_calibrated = False
        self.register_buffer("constants", torch.zeros(0))  # a buffer, for the log of a resumed run
        self.register_parameter("targets", None)
        if model is not None:
            self.attach(model)

    # Meeting the network

    def attach(self, network: nn.Module, example: Tensor | None = None) -> None:
        """Hook into a network; with an `example` input, find its stages and check them."""
        self._holder = (network,)  # in a tuple, so that nn.Module does not register a submodule
        self._checked = False
        named = self.stages is not None
        if not named and not self._find_stages(unwrap(network), example):
            return  # without an example, calibration finds them in its first batch
        if len(set(self.chain)) < max(2, len(self.chain)):
            raise ValueError(
                f"Expected different stages (beside {INPUT!r}, the network's input, which "
                f"from_input=True adds) that make two maps or more, but got {self.stages}."
            )
        self._recorder.attach(network, self._recorded)
        if example is not None:
            self._check_maps(self._maps(example), named)
        if self.targets is None:
            device = next(network.parameters(), torch.zeros(())).device
            start = torch.zeros(len(self.chain) - 1, device=device)
            self.targets = nn.Parameter(start, requires_grad=self.learn_targets)
            self.constants = torch.full_like(start, torch.nan)  # until the first pass is watched

    def _find_stages(self, network: nn.Module, example: Tensor | None) -> bool:
        stages = default_stages(network, example)
        if example is not None and not stages:
            raise ValueError("Found no feature maps (n, C, H, W) in this network: name its stages.")
        if stages and not hasattr(network, "taps"):
            words = ", ".join(stages)
            log.warning("LiDER watches the stages %s; pass stages=[…] to choose.", words)
        self.stages = stages or None
        return bool(stages)

    @property
    def _network(self) -> nn.Module:
        if not self._holder:
            raise RuntimeError("LiDER has no network yet: LiDER(model), or attach(model).")
        return self._holder[0]

    @property
    def chain(self) -> list[str]:
        """The maps between which λ is estimated, in order: K + 1 names for K constants."""
        stages = self.stages or []
        return [INPUT, *stages] if self.from_input else list(stages)

    @property
    def _recorded(self) -> list[str]:
        """The maps to record; the Jacobian needs the input alone, for a pass of its own."""
        return [INPUT] if self.estimator == "jacobian" else self.chain

    def _maps(self, x: Tensor) -> Features:
        """The maps of one pass in eval mode; without gradient, unless the estimate needs one."""
        if self.estimator == "jacobian":
            return stage_maps(self._network, self.chain, x)
        with evaluating(self._network), self._recorder.recording() as passes:
            self._network(x)
        return passes[0]

    def _check_maps(self, features: Features, named: bool) -> None:
        if (ran := list(features)) != self.chain:
            raise ValueError(f"Expected stages in running order, {ran}, but got {self.chain}.")
        if self.estimator == "spatial":  # the others take maps of any shape
            shapes = {name: feature.shape[1:] for name, feature in features.items()}
            if not named:  # found, not asked for: leave out maps that cannot be regularised
                chain = spatial_maps.usable(self.chain, shapes)
                self._left_out = [stage for stage in self.chain if stage not in chain]
                self.from_input = chain[0] == INPUT
                self.stages = [stage for stage in chain if stage != INPUT]
                self._recorder.attach(self._network, self._recorded)
                log.info("LiDER watches %s", " → ".join(self.chain))
            spatial_maps.check(self.chain, shapes)
        self._checked = True

    @torch.no_grad()
    def calibrate(self, batches: Iterable[Any], *, max_samples: int = 1024) -> None:
        """Start the targets c_k at the mean λ_k of these samples, in eval mode.

        batches: inputs, or tuples that begin with them (a DataLoader of the first task); at most
        `max_samples` samples are used, so that a run starts quickly.
        """
        total, count = torch.zeros(()), 0
        device = next(self._network.parameters(), torch.zeros(())).device
        for batch in batches:
            x = (batch[0] if isinstance(batch, (tuple, list)) else batch).to(device)
            x = x[: max_samples - count]
            if len(x) < self._least:
                continue
            if self.targets is None:
                self.attach(self._network, x)
            # If samples are independent: in parts, whose maps stay in the processor's cache.
            parts = [x] if self.estimator == "batch" else x.split(64)
            constants = torch.cat([self._constants_of(part) for part in parts])
            total = total.to(device) + constants.mean(0) * len(x)
            count += len(x)
            if max_samples - count < self._least:
                break
        if count == 0:
            least = self._least
            raise UserError(f"Expected batches of at least {least} samples, but there was none.")
        self._set_targets(total / count)

    def _constants_of(self, x: Tensor) -> Tensor:
        """λ (n, K) of a batch, from a pass of its own."""
        features = self._maps(x)
        if not self._checked:
            self._check_maps(features, named=True)
        return self._estimate(features)

    def _set_targets(self, constants: Tensor) -> None:
        assert self.targets is not None
        self.targets.data.copy_(constants)
        self.calibrated.fill_(True)
        self._is_calibrated = True

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kw: Any) -> None:
        if self.targets is None and f"{prefix}targets" in state_dict:
            raise UserError(
                "Expected to know the stages before a state is loaded: name them "
                "(LiDER(model, stages=[...])), or attach(model, example) first."
            )
        super()._load_from_state_dict(state_dict, prefix, *args, **kw)

    def loaded(self) -> None:
        self._is_calibrated = bool(self.calibrated)

    def param_groups(self) -> list[dict[str, Any]]:
        """The targets, without weight decay and at their own rate, for every optimizer."""
        self._require_stages()
        own = {"weight_decay": 0.0, "lr_factor": self.target_lr}
        return [{"params": [self.targets], **own}] if self.learn_targets else []

    # Watching

    @contextmanager
    def watch(self, rows: Tensor | None = None) -> Iterator[None]:
        """Watch the samples that pass through the network inside this context.

        rows: (n,) mask or indices of the samples that count; all by default. Several passes before
        one `penalty()` are averaged.
        """
        self._require_stages()
        self._idle = False
        try:
            with self._recorder.recording() as passes:
                yield
            for features in passes:
                self._take(features, rows)
        except BaseException:
            self._watched = []  # the step is lost: it must not count in the next one
            raise

    def _take(self, features: Features, rows: Tensor | None) -> None:
        """Keep λ of these rows of one pass, unless they are too few for an estimate."""
        local = self.estimator == "jacobian"
        if not self._checked and not local:
            self._check_maps(features, named=True)
        if rows is not None:
            features = {name: feature[rows] for name, feature in features.items()}
        if self._team and self.estimator == "batch":
            features = _joined(features, self._team)
        first = features[self._recorded[0]]
        if len(first) < self._least:
            if self._team and self.estimator != "batch":  # other ranks may have rows in this pass
                dtype = torch.promote_types(first.dtype, torch.float32)
                self._watched.append(first.new_zeros(0, len(self.chain) - 1, dtype=dtype))
            return
        constants = self._constants_of(features[INPUT]) if local else self._estimate(features)
        self.constants = constants.detach().mean(0)
        if not self._is_calibrated:
            self._set_targets(self.constants)
        self._watched.append(constants)

    def _estimate(self, features: Features) -> Tensor:
        """λ of every stage: (n, K), one row per sample; (1, K) for the batch form."""
        on_host = features[self.chain[0]].device.type == "cpu"  # elsewhere a check of tol waits
        constants = [
            ESTIMATORS[self.estimator](
                features[before],
                features[after],
                reading=self.reading,
                iterations=self.iterations,
                tol=self.tol if on_host else 0.0,
            )
            for before, after in pairwise(self.chain)
        ]
        return torch.stack([constant.reshape(-1) for constant in constants], dim=1)

    @property
    def _least(self) -> int:
        """How many samples an estimate needs."""
        return 2 if self.estimator == "batch" else 1

    def _require_stages(self) -> None:
        if self.targets is None:
            raise RuntimeError(
                "LiDER has no stages yet: name them, or let calibrate() find them first."
            )

    # Loss terms

    def terms(self) -> Terms:
        """The two weighted terms by name, of the passes watched since the last `penalty()`.

        If there were none: those of the last penalty (without gradient), for logging.
        """
        if not self._watched:
            return {name: term.clone() for name, term in self._last_terms.items()}
        return {name: term.mean() for name, term in self._weighted_terms().items()}

    def penalty(self) -> Tensor:
        """α · L_cLip + β · L_0Lip of the passes watched since the last call.

        Exactly 0 if there were none; without any `watch()` it also warns, once. It also warns once
        if the network is trained and the targets are not: `param_groups()` was forgotten.
        """
        if self._idle and self.active and not self._warned:
            self._warned = True
            warnings.warn(
                "LiDER.penalty() is 0: there was no watch() since the last one. Let the replayed "
                "samples pass through the network inside `with lider.watch():`.",
                stacklevel=2,
            )
        self._idle = True
        if self.targets is not None and self.learn_targets:
            self._target_steps.check(self._network, self.targets)
        terms = self.terms() if self._watched else {}
        self._last_terms = {name: term.detach() for name, term in terms.items()}
        self._watched = []
        return sum(terms.values(), self.constants.new_zeros(()))

    def _weighted_terms(self, names: Sequence[str] = TERMS) -> Terms:
        """One value per watched row, scaled so that their mean averages passes of any size."""
        assert self.targets is not None
        names = [name for name in names if self._weight(name) > 0]  # 0 · inf would be NaN
        terms: dict[str, list[Tensor]] = {name: [] for name in names}
        for constants, share in zip(self._watched, self._shares(), strict=True):
            for name, values in terms.items():
                target = self.targets.relu().to(constants.device) if name == "c_lip" else 0.0
                distance = (constants - target).abs().mean(1)
                values.append(self._weight(name) * share * distance)
        return {name: torch.cat(values) for name, values in terms.items()}

    def _shares(self) -> list[float] | Tensor:
        """Weights per row, one for each pass, so that every pass counts equally, on all ranks
        together. There it also sets λ for the log, that of the last pass."""
        if self._team is None:
            counts = [len(constants) for constants in self._watched]
            return [sum(counts) / (len(counts) * n) for n in counts]
        sums = [torch.cat([c.new_tensor([len(c)]), c.detach().sum(0)]) for c in self._watched]
        totals = torch.stack(sums)
        self._team.total(totals)
        rows = totals[:, 0]
        self.constants = totals[-1, 1:] / rows[-1]
        return rows.sum() / (len(rows) * rows)

    def _weight(self, name: str) -> float:
        return self.alpha if (name == "c_lip") == (self.weights == "paper") else self.beta

    # In the lab

    @property
    def active(self) -> bool:
        return self.alpha > 0 or self.beta > 0

    def start(self, step: Step) -> None:
        """Calibrate on the first fit's data, and anew if a fit restarts the network."""
        if self.active and (step.fit.restart or not self.calibrated):
            self.calibrate(
                step.plain_batches(step.fit.data, step.generator("lider"), limit=CALIBRATION)
            )

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[None]:
        if not self.active or self.draw == "fresh":
            return nullcontext()
        self._team = step.team if step.team.size > 1 else None
        if self.rows == "all" and batch.origin != "both":
            wanted = "stream" if self.on == "stream" else "memory"
            return self._watch_all(batch) if batch.origin == wanted and batch else nullcontext()
        rows = ~batch.replayed if self.on == "stream" else batch.replayed
        if self.rows == "past":
            rows = rows & (batch.task < step.task.index)
        if not any(step.team.agree(bool(rows.any()))):
            return nullcontext()
        return self.watch(None if len(rows) and rows.all() else rows.nonzero()[:, 0])

    def _watch_all(self, batch: Batch) -> AbstractContextManager[None]:
        """Watch every row; of a rank without rows, not the blank ones that it lets pass."""
        return self.watch(None if len(batch) else batch.slot)

    def losses(self, step: Step) -> Terms:
        if not self.active:
            return {}
        if self.draw == "fresh":
            return self._fresh_losses(step)
        terms = self._weighted_terms() if self._watched else {}
        self._watched = []
        return {f"lider/{name}": term for name, term in terms.items()}

    def _fresh_losses(self, step: Step) -> Terms:
        """As released: each term has its own draw from the memory, and its own pass."""
        terms: Terms = {}
        self._team = step.team if step.team.size > 1 else None
        for name in (name for name in TERMS if self._weight(name) > 0):
            batch = step.draw(generator=step.generator("lider"))
            if batch:
                with self._watch_all(batch):
                    step.net(batch)
                terms |= self._weighted_terms([name]) if self._watched else {}
            self._watched = []
        return {f"lider/{name}": term for name, term in terms.items()}

    def readings(self) -> dict[str, float]:
        """λ_k and c_k of every stage, for the log; {} before they are known."""
        if self.targets is None or not self.active:
            return {}
        numbers = {"λ": self.constants.tolist(), "c": self.targets.tolist()}
        return {
            f"lider/{symbol}/{stage}": value
            for symbol, values in numbers.items()
            for stage, value in zip(self.chain[1:], values, strict=True)
            if value == value
        }

    def resolved(self) -> dict[str, Any]:
        """The maps between which λ is estimated, and the stages that were left out."""
        return {"chain": self.chain, "left_out": self._left_out}

    def extra_repr(self) -> str:
        return (
            f"{' → '.join(self.chain)}, alpha={self.alpha}, beta={self.beta}, "
            f"estimator={self.estimator!r}, reading={self.reading!r}"
        )


def _joined(features: Features, team: Team) -> Features:
    """The features of all ranks, with gradient, in one message."""
    maps = [feature.flatten(1) for feature in features.values()]
    parts = team.join(torch.cat(maps, 1)).split([part.shape[1] for part in maps], 1)
    shapes = {name: feature.shape[1:] for name, feature in features.items()}
    return {
        name: part.reshape(len(part), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
