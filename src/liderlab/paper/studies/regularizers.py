"""The regularisation tables: ER-ACE and DER++ with sSGD, oEWC, oLAP or LiDER."""

from .study_definition import grid
from .study_rows import accuracy_study

STUDY = accuracy_study(
    title="LiDER and other regularisers",
    tables={"faa": "regularizers-faa", "ff": "regularizers-ff"},
    settings=("cifar100", "miniimagenet", "cub200"),
    variants=grid(method=("er-ace", "der++"), addition=("", "ssgd", "oewc", "olap", "lider")),
    series={"alone": "", "+ sSGD": "ssgd", "+ oEWC": "oewc", "+ oLAP": "olap", "+ LiDER": "lider"},
    notes=[
        "The paper prints no weights for sSGD, oEWC and oLAP: these runs have the package's "
        "defaults, and the values of the method alone."
    ],
)
