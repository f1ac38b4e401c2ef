"""The methods: one file each, listed here. A new one is one file and one line."""

from ..registry import Entry, Registry

METHODS = Registry(
    "method",
    {
        "finetune": Entry(
            "liderlab.methods.finetune:Finetune",
            "trains on each task as it comes: the lower bound",
            {"rehearsal": False, "policy": None, "paper": None, "year": None},
        ),
        "joint": Entry(
            "liderlab.methods.joint:Joint",
            "trains once on all tasks together: the upper bound",
            {"rehearsal": False, "policy": None, "paper": None, "year": None},
        ),
        "er": Entry(
            "liderlab.methods.er:ER",
            "cross-entropy on the stream and on replayed samples",
            {
                "rehearsal": True,
                "policy": "reservoir",
                "paper": "Chaudhry et al., On Tiny Episodic Memories",
                "year": 2019,
            },
        ),
        "er-ace": Entry(
            "liderlab.methods.er_ace:ERACE",
            "ER whose stream loss leaves past classes alone",
            {
                "rehearsal": True,
                "policy": "reservoir",
                "paper": "Caccia et al., New Insights on Reducing Abrupt Representation Change",
                "year": 2022,
            },
        ),
        "der++": Entry(
            "liderlab.methods.der:DER",
            "replays stored logits and labels, from two independent draws",
            {
                "rehearsal": True,
                "policy": "reservoir",
                "paper": "Buzzega et al., Dark Experience for General Continual Learning",
                "year": 2020,
            },
        ),
    },
)
