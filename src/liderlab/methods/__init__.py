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
            {
                "rehearsal": False,
                "task_by_task": False,
                "policy": None,
                "paper": None,
                "year": None,
            },
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
        "der": Entry(
            "liderlab.methods.der:logits_only",
            "replays stored logits",
            {
                "rehearsal": True,
                "policy": "reservoir",
                "paper": "Buzzega et al., Dark Experience for General Continual Learning",
                "year": 2020,
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
        "x-der-rpc": Entry(
            "liderlab.methods.x_der_rpc:XDER",
            "DER++ that keeps stored logits up to date and prepares for future classes",
            {
                "rehearsal": True,
                "policy": "class-balanced",
                "paper": "Boschini et al., Class-Incremental Continual Learning into the "
                "eXtended DER-verse",
                "year": 2022,
            },
        ),
        "icarl": Entry(
            "liderlab.methods.icarl:ICaRL",
            "distils the last network and classifies by the nearest mean of exemplars",
            {
                "rehearsal": True,
                "policy": "herding",
                "paper": "Rebuffi et al., iCaRL: Incremental Classifier and Representation "
                "Learning",
                "year": 2017,
            },
        ),
        "gdumb": Entry(
            "liderlab.methods.gdumb:GDumb",
            "only collects, then fits a fresh network on the memory",
            {
                "rehearsal": True,
                "fits_memory": True,
                "task_by_task": False,
                "policy": "greedy-balanced",
                "paper": "Prabhu et al., GDumb: A Simple Approach that Questions Our Progress in "
                "Continual Learning",
                "year": 2020,
            },
        ),
        "gmed": Entry(
            "liderlab.methods.gmed:GMED",
            "ER that edits what it replays to be harder to remember",
            {
                "rehearsal": True,
                "policy": "reservoir",
                "paper": "Jin et al., Gradient-based Editing of Memory Examples for Online "
                "Task-free Continual Learning",
                "year": 2021,
            },
        ),
    },
)
