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
    },
)
