"""LiDER: Lipschitz-driven rehearsal (Bonicelli et al., NeurIPS 2022)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..functional.lipschitz import Reading
from ..types import Batch, Source, Terms
from . import lider_options as options
from .base import Regularizer
from .feature_recorder import Features, joined
from .lider_rows import all_rows, rows_to_watch, select
from .stage_constants import Estimator, StageConstants
from .target_steps import TargetSteps

if TYPE_CHECKING:
    from ..distributed.team import Team
    from ..training.step import Step

TERMS = ("c_lip", "0_lip")


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
            on="replay" | "stream" | "both" (once the memory has rows); rows="all" | "past" (of past
            tasks only); draw="reuse": the method's own passes, or "fresh": one extra draw and pass
            for each of the two terms, as released.
        rows_at_most: λ of the first so many of them only, per process: faster, noisier, unbiased.
        order: "c-0" | "0-c", the term that comes first; with draw="fresh" it also draws first.
        control: make the passes of draw="fresh" and leave out their terms, to see what the passes
            alone do (BatchNorm's statistics).
        calibrate: "start", or "first-task": there is no c-term before the first task has ended (in
            your own loop: before `calibrate()` is called).
        calibration_rows, calibration_augmented, calibration_data: the lab calibrates on so many
            random rows (None: all), augmented or not, of the fit's data or of the task's; these
            differ for GDumb, which fits its memory.

    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2))
    >>> lider = LiDER(model, stages=["0", "2"], alpha=0.1, beta=0.3)
    >>> lider.calibrate([torch.rand(16, 3, 8, 8)])
    >>> with lider.watch():
    ...     output = model(torch.rand(4, 3, 8, 8))
    >>> lider.penalty().requires_grad
    True
    """

    needs_memory = True
    on_features = True
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
        weights: options.Weights = "paper",
        learn_targets: bool = True,
        iterations: int | None = 10,
        tol: float = 1e-6,
        from_input: bool = True,
        on: options.On = "replay",
        rows: options.Rows = "all",
        draw: options.Draw = "reuse",
        rows_at_most: int | None = None,
        target_lr: float = 1.0,
        order: options.Order = "c-0",
        control: bool = False,
        calibrate: options.Calibrate = "start",
        calibration_rows: int | None = 256,
        calibration_augmented: bool = False,
        calibration_data: options.CalibrationData = "fit",
    ) -> None:
        super().__init__()
        options.check_options(
            stages,
            alpha=alpha,
            beta=beta,
            estimator=estimator,
            reading=reading,
            weights=weights,
            iterations=iterations,
            tol=tol,
            on=on,
            rows=rows,
            draw=draw,
            rows_at_most=rows_at_most,
            target_lr=target_lr,
            order=order,
            control=control,
            calibrate=calibrate,
            calibration_rows=calibration_rows,
            calibration_data=calibration_data,
        )
        self.alpha, self.beta, self.weights = alpha, beta, weights
        self.learn_targets, self.target_lr = learn_targets, target_lr
        self.on, self.rows, self.rows_at_most = on, rows, rows_at_most
        self.draw, self.control, self.calibration_data = draw, control, calibration_data
        self._order = TERMS if order == "c-0" else TERMS[::-1]
        self._calibrates_late = calibrate == "first-task"
        self.calibration_rows, self.calibration_augmented = calibration_rows, calibration_augmented
        named = None if stages is None else list(stages)
        self._stages = StageConstants(named, estimator, reading, iterations, tol, from_input)
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
        if self._stages.attach(network, example):
            self._make_targets()

    def _make_targets(self) -> None:
        if self.targets is None:
            device = next(self._stages.network.parameters(), torch.zeros(())).device
            start = torch.zeros(len(self.chain) - 1, device=device)
            self.targets = nn.Parameter(start, requires_grad=self.learn_targets)
            self.constants = torch.full_like(start, torch.nan)  # until the first pass is watched

    @property
    def stages(self) -> list[str] | None:
        """The stages, named or found; None while they are not known."""
        return self._stages.stages

    @property
    def chain(self) -> list[str]:
        """The maps between which λ is estimated, in order: K + 1 names for K constants."""
        return self._stages.chain

    def calibrate(self, batches: Iterable[Any], *, max_samples: int | None = 1024) -> None:
        """Start the targets c_k at the mean λ_k of these samples, in eval mode.

        batches: inputs, or tuples that begin with them (a DataLoader of the first task); at most
        `max_samples` samples are used (None: all), so that a run starts quickly.
        """
        constants = self._stages.mean(batches, max_samples)
        self._make_targets()
        self._set_targets(constants)

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
            with self._stages.recording(self.rows_at_most if rows is None else None) as passes:
                yield
            for features in passes:
                self._take(features, rows)
        except BaseException:
            self._watched = []  # the step is lost: it must not count in the next one
            raise

    def _take(self, features: Features, rows: Tensor | None) -> None:
        """Keep λ of these rows of one pass, unless they are too few for an estimate."""
        self._stages.check(features)
        features = select(features, rows, self.rows_at_most)
        together = self._stages.estimator == "batch"
        if self._team and together:
            features = joined(features, self._team)
        some = next(iter(features.values()))
        if len(some) < self._stages.least:
            if self._team and not together:  # other ranks may have rows in this pass
                dtype = torch.promote_types(some.dtype, torch.float32)
                self._watched.append(some.new_zeros(0, len(self.chain) - 1, dtype=dtype))
            return
        constants = self._stages.of_pass(features)
        self.constants = constants.detach().mean(0)
        if not self._is_calibrated and not self._calibrates_late:
            self._set_targets(self.constants)
        self._watched.append(constants)

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
        return {name: term.mean() for name, term in self._weighted_terms(self._names).items()}

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
            self._target_steps.check(self._stages.network, self.targets)
        terms = self.terms() if self._watched else {}
        self._last_terms = {name: term.detach() for name, term in terms.items()}
        self._watched = []
        return sum(terms.values(), self.constants.new_zeros(()))

    def _weighted_terms(self, names: Sequence[str]) -> Terms:
        """One value per watched row, scaled so that their mean averages passes of any size."""
        assert self.targets is not None
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

    @property
    def _names(self) -> list[str]:
        """The terms in their order, without those of weight 0: 0 · inf would be NaN."""
        waiting = {"c_lip"} if self._calibrates_late and not self._is_calibrated else set()
        return [name for name in self._order if self._weight(name) > 0 and name not in waiting]

    def _weight(self, name: str) -> float:
        return self.alpha if (name == "c_lip") == (self.weights == "paper") else self.beta

    # In the lab

    @property
    def active(self) -> bool:
        return self.alpha > 0 or self.beta > 0

    def start(self, step: Step) -> None:
        """Calibrate on the first fit's data, and anew if a fit restarts the network."""
        late, again = self._calibrates_late, step.fit.restart
        if self.active and not late and (again or not self.calibrated):
            of_task = self.calibration_data == "task"
            self._calibrate_on(step.task.train if of_task else step.fit.data, step)

    def end_task(self, step: Step) -> None:
        if self.active and self._calibrates_late and not self._is_calibrated:
            self._calibrate_on(step.task.train, step)
            assert self.targets is not None
            step.team.broadcast(self.targets.data)

    def _calibrate_on(self, data: Source, step: Step) -> None:
        chosen: Any = {"limit": self.calibration_rows, "augmented": self.calibration_augmented}
        self.calibrate(step.inputs_of(data, step.generator("lider"), **chosen), max_samples=None)

    def hear(self, batch: Batch, step: Step) -> AbstractContextManager[None]:
        if not self.active or self.draw == "fresh":
            return nullcontext()
        self._team = step.team if step.team.size > 1 else None
        watched, rows = rows_to_watch(batch, step, self.on, self.rows)
        return self.watch(rows) if watched else nullcontext()

    def losses(self, step: Step) -> Terms:
        if not self.active:
            return {}
        if self.draw == "fresh":
            return self._fresh_losses(step)
        terms = self._weighted_terms(self._names) if self._watched else {}
        self._watched = []
        return {f"lider/{name}": term for name, term in terms.items()}

    def _fresh_losses(self, step: Step) -> Terms:
        """As released: each term has its own draw from the memory, and its own pass. A control
        makes the passes alone."""
        terms: Terms = {}
        self._team = step.team if step.team.size > 1 else None
        for name in self._names:
            batch = step.draw(generator=step.generator("lider"))
            if batch:
                with torch.set_grad_enabled(not self.control), self.watch(all_rows(batch)):
                    step.net(batch)
                terms |= self._weighted_terms([name]) if self._watched else {}
            self._watched = []
        return {} if self.control else {f"lider/{name}": term for name, term in terms.items()}

    def readings(self) -> dict[str, float]:
        """λ_k and c_k of every stage, for the log; {} before they are known."""
        if self.targets is None or not self.active:
            return {}
        targets = self.targets if self._is_calibrated else torch.full_like(self.targets, torch.nan)
        numbers = {"λ": self.constants.tolist(), "c": targets.tolist()}
        return {
            f"lider/{symbol}/{stage}": value
            for symbol, values in numbers.items()
            for stage, value in zip(self.chain[1:], values, strict=True)
            if value == value
        }

    def resolved(self) -> dict[str, Any]:
        """The maps between which λ is estimated, and the stages that were left out."""
        return {"chain": self.chain, "left_out": self._stages.left_out}

    def extra_repr(self) -> str:
        return (
            f"{' → '.join(self.chain)}, alpha={self.alpha}, beta={self.beta}, "
            f"estimator={self._stages.estimator!r}, reading={self._stages.reading!r}"
        )
