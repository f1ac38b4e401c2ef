"""LiDER in a LightningModule: rehearsal over two tasks, one `fit` each."""

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from liderlab import LiDER


class Rehearsal(lightning.LightningModule):
    def __init__(self, first_task: DataLoader) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
            nn.Sequential(nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.BatchNorm2d(64), nn.ReLU()),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )
        self.lider = LiDER(self.model, stages=["0", "1"], alpha=0.1, beta=0.3)
        self.lider.calibrate(first_task)  # the targets are part of Lightning's checkpoints
        self.memory: list[torch.Tensor] = []

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        x, y = batch
        loss = cross_entropy(self.model(x), y)
        if self.memory:
            memory_x, memory_y = self.memory
            drawn = torch.randint(len(memory_y), (32,))
            with self.lider.watch():  # LiDER sees the passes in this block
                logits = self.model(memory_x[drawn])
            loss = loss + cross_entropy(logits, memory_y[drawn]) + self.lider.penalty()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups = [{"params": self.model.parameters()}, *self.lider.param_groups()]
        return torch.optim.SGD(groups, lr=0.05)


if __name__ == "__main__":
    lightning.seed_everything(0, verbose=False)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1).expand(-1, 3, -1, -1) / 16
    y = torch.tensor(digits.target)
    tasks = [TensorDataset(x[part], y[part]) for part in (y < 5, y >= 5)]
    module = Rehearsal(DataLoader(tasks[0], batch_size=128))
    for number, task in enumerate(tasks):
        trainer = lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, DataLoader(task, batch_size=32, shuffle=True))
        keep = torch.randperm(len(task))[:50]
        module.memory = [column[keep] for column in task.tensors]
        module.eval()
        with torch.no_grad():
            right = [(module.model(t.tensors[0]).argmax(1) == t.tensors[1]) for t in tasks]
        module.train()
        accuracies = ", ".join(f"{100 * r.float().mean():.1f} %" for r in right)
        print(f"after task {number + 1}: {accuracies}")
