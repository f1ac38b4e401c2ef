"""What can be added to any method: one file each, listed here."""

from ..registry import Entry, Registry

REGULARIZERS = Registry(
    "regularizer",
    {
        "lider": Entry(
            "liderlab.regularizers.lider:LiDER",
            "bounds each stage's Lipschitz constant on replayed samples",
            {"paper": "Bonicelli et al.", "year": 2022, "needs_memory": True},
        ),
        "oewc": Entry(
            "liderlab.regularizers.oewc:OEWC",
            "holds weights in place by a running diagonal Fisher",
            {"paper": "Schwarz et al.", "year": 2018, "needs_memory": False, "task_by_task": True},
        ),
        "olap": Entry(
            "liderlab.regularizers.olap:OLAP",
            "holds layers in place by a running Kronecker-factored curvature",
            {"paper": "Ritter et al.", "year": 2018, "needs_memory": False, "task_by_task": True},
        ),
        "ssgd": Entry(
            "liderlab.regularizers.ssgd:SSGD",
            "stable training: learning rate decaying by task, dropout, small batches",
            {"paper": "Mirzadeh et al.", "year": 2020, "needs_memory": False, "task_by_task": True},
        ),
    },
)
