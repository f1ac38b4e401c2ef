"""A study in Optuna's storage: which values to try next, and how good the earlier ones were.

Searches on several machines may share a study; each marks its own trials with its `home`.
"""

from __future__ import annotations

import logging
import re
import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UserError
from .optional_packages import require
from .search_space import Space, ValueList, ValueRange

Sampler = Literal["tpe", "grid"]
ATTEMPTS = 10
ENOUGH = 4  # finished trials, to tell which fields matter
HOME = "home"
SURPLUS = "surplus"  # marks a trial too many: two searches asked for the last one at once


@dataclass(frozen=True)
class Trial:
    """A trial under way. reported: the tasks whose accuracy Optuna has."""

    optuna: Any
    values: dict[str, Any]
    reported: set[int]

    def __str__(self) -> str:
        values = ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in self.values.items()
        )
        return f"trial {self.optuna.number}: {values}"


class OptunaStudy:
    """The study of this name in the storage at `url`, created if there is none."""

    def __init__(self, url: str, name: str, space: Space, home: str) -> None:
        self._optuna = optuna = require("optuna", "search", "lider search")
        self._states, self._home = optuna.trial.TrialState, home
        kinds = optuna.distributions
        self._space = {key: _distribution(kinds, values) for key, values in space.items()}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        try:
            self._study = optuna.create_study(
                storage=self._connect(_with_driver(url)),
                study_name=name,
                direction="maximize",
                load_if_exists=True,
            )
        except Exception as error:  # database drivers share no class of errors
            text = " ".join(str(error).split("\n(Background")[0].split())
            raise UserError(f"cannot use the storage {_without_password(url)}: {text}") from None

    def _connect(self, url: str) -> Any:
        """Open the storage; try again if another search is creating its tables."""
        sql = require("sqlalchemy", "search", "lider search")
        # every query closes its connection: a pool's would stay open until the process ends
        options = {"poolclass": sql.pool.NullPool}
        for _ in range(ATTEMPTS):
            try:
                return self._optuna.storages.RDBStorage(url, engine_kwargs=options)
            except (sql.exc.IntegrityError, sql.exc.ProgrammingError):
                time.sleep(1)
        return self._optuna.storages.RDBStorage(url, engine_kwargs=options)

    def mismatch(self, base: str) -> str | None:
        """Why this search cannot join the study, or None. base: the part that all trials share.

        A range may become wider or narrower; a list of values, and its order, may not change.
        """
        stored = self._study.user_attrs.get("base")
        if stored is None:
            self._study.set_user_attr("base", base)
        elif stored != base:
            return "searches around another configuration"
        check = self._optuna.distributions.check_distribution_compatibility
        for trial in self._study.get_trials(deepcopy=False):
            for key in sorted(self._space.keys() & trial.distributions.keys()):
                try:
                    check(trial.distributions[key], self._space[key])
                except ValueError:
                    return f"chooses {key} from other values"
        return None

    def sample_by(self, sampler: Sampler, seed: int, prune_after: int) -> None:
        """Set the sampler, and the number of finished trials before another can be pruned."""
        samplers, pruners = self._optuna.samplers, self._optuna.pruners
        if sampler == "tpe":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # multivariate is "experimental" in some versions
                chosen = samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        else:
            chosen = samplers.GridSampler({k: d.choices for k, d in self._space.items()}, seed)
            chosen.after_trial = lambda *_: None  # would stop Optuna's own loop, unused here
        self._study.sampler = chosen
        self._study.pruner = pruners.MedianPruner(n_startup_trials=prune_after, n_warmup_steps=0)

    def size(self) -> int:
        """The number of trials that were ever begun."""
        return len(self._study.get_trials(deepcopy=False))

    def unfinished(self) -> list[Trial]:
        """Trials that an interrupted search of this home has left."""
        make = self._optuna.trial.Trial
        return [
            Trial(make(self._study, left._trial_id), left.params, set(left.intermediate_values))
            for left in self._study.get_trials(states=(self._states.RUNNING,))
            if left.user_attrs.get(HOME) == self._home
        ]

    def ask(self, limit: int) -> Trial | None:
        """A new trial with its values; None if the study has `limit` trials, of all searches."""
        if len(self._numbers()) >= limit:
            return None
        trial = self._study.ask(self._space)
        trial.set_user_attr(HOME, self._home)
        if self._numbers().index(trial.number) >= limit:
            trial.set_user_attr(SURPLUS, True)
            self._study.tell(trial, state=self._states.FAIL)
            return None
        return Trial(trial, trial.params, set())

    def _numbers(self) -> list[int]:
        trials = self._study.get_trials(deepcopy=False)
        return sorted(trial.number for trial in trials if SURPLUS not in trial.user_attrs)

    def report(self, trial: Trial, task: int, accuracy: float) -> bool:
        """Report the accuracy after a task, once; returns whether this has pruned the trial."""
        if task in trial.reported:
            return False
        trial.reported.add(task)
        trial.optuna.report(accuracy, task)
        if pruned := bool(trial.optuna.should_prune()):
            self._study.tell(trial.optuna, state=self._states.PRUNED)
        return pruned

    def tell(self, trial: Trial, accuracy: float | None) -> None:
        """Finish the trial. accuracy: None if it has failed."""
        state = self._states.FAIL if accuracy is None else None
        self._study.tell(trial.optuna, accuracy, state)

    def best(self) -> tuple[float, dict[str, Any]] | None:
        """The best accuracy and its values; None if no trial has finished."""
        finished = self._study.get_trials(states=(self._states.COMPLETE,))
        if not finished:
            return None
        trial = max(finished, key=lambda t: (t.value, -t.number))
        return float(trial.value), trial.params

    def importances(self) -> dict[str, float]:
        """Each field's share in the variance of the accuracy (fANOVA); {} for too few trials, or if
        all are equally good."""
        finished = self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))
        if len(finished) < ENOUGH or len({trial.value for trial in finished}) == 1:
            return {}
        tools = self._optuna.importance
        evaluator = tools.FanovaImportanceEvaluator(seed=0)
        return dict(tools.get_param_importances(self._study, evaluator=evaluator))

    def rows(self) -> list[dict[str, Any]]:
        """A row per trial: its values, how it ended, its accuracy."""
        return [
            {
                "number": trial.number,
                "state": trial.state.name.lower(),
                "accuracy": trial.value,
                "values": trial.params,
            }
            for trial in self._study.get_trials(deepcopy=False)
        ]


def _distribution(kinds: Any, values: ValueList | ValueRange) -> Any:
    """A field's values as Optuna stores them."""
    if isinstance(values, ValueList):
        return kinds.CategoricalDistribution(values.values)
    kind = kinds.IntDistribution if values.whole else kinds.FloatDistribution
    return kind(values.low, values.high, log=values.log)


def _with_driver(url: str) -> str:
    """Name the driver for PostgreSQL: SQLAlchemy's default depends on its version.

    >>> _with_driver("postgresql://host/db")
    'postgresql+psycopg2://host/db'
    """
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)


def _without_password(url: str) -> str:
    """
    >>> _without_password("postgresql://me:secret@host/db")
    'postgresql://me:…@host/db'
    """
    return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1…@", url)
