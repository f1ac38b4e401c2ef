"""LiDER in your own training loop: experience replay on two tasks of digits, in plain PyTorch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from liderlab import LiDER

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
x, y = x.expand(-1, 3, -1, -1), torch.tensor(digits.target)
tasks = [TensorDataset(x[part], y[part]) for part in (y < 5, y >= 5)]

model = nn.Sequential(
    nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
    nn.Sequential(nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.BatchNorm2d(64), nn.ReLU()),
    nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)
lider = LiDER(model, stages=["0", "1", "2"], alpha=0.1, beta=0.3)
lider.calibrate(DataLoader(tasks[0], batch_size=128))  # start values of the targets c_k
cross_entropy = nn.CrossEntropyLoss()
memory_x, memory_y = torch.empty(0, 3, 8, 8), torch.empty(0, dtype=torch.long)

for number, task in enumerate(tasks):
    optimizer = torch.optim.SGD([{"params": model.parameters()}, *lider.param_groups()], lr=0.05)
    for _epoch in range(3):
        for batch_x, batch_y in DataLoader(task, batch_size=32, shuffle=True):
            loss = cross_entropy(model(batch_x), batch_y)
            if len(memory_y):
                drawn = torch.randint(len(memory_y), (32,))
                with lider.watch():  # LiDER sees the passes in this block
                    logits = model(memory_x[drawn])
                loss = loss + cross_entropy(logits, memory_y[drawn]) + lider.penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    keep = torch.randperm(len(task))[:50]
    memory_x = torch.cat([memory_x, task.tensors[0][keep]])
    memory_y = torch.cat([memory_y, task.tensors[1][keep]])

    model.eval()
    with torch.no_grad():
        accuracy = [(model(t.tensors[0]).argmax(1) == t.tensors[1]).float().mean() for t in tasks]
    model.train()
    print(f"after task {number + 1}: " + ", ".join(f"{100 * a:.1f} %" for a in accuracy))

print("λ:", [round(value, 3) for value in lider.constants.tolist()])
print("c:", [round(value, 3) for value in lider.targets.tolist()])
