"""LiDER in Avalanche: one plugin beside Avalanche's own replay plugin."""

import torch
from avalanche.benchmarks import nc_benchmark
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from avalanche.training.supervised import Naive
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from liderlab import LiDER
from liderlab.integrations.avalanche import LiDERPlugin

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1).expand(-1, 3, -1, -1) / 16
y = torch.tensor(digits.target)
train, test = (TensorDataset(x[part], y[part]) for part in (slice(1400), slice(1400, None)))
for data in (train, test):
    data.targets = data.tensors[1]  # Avalanche looks for the labels here
benchmark = nc_benchmark(train, test, n_experiences=5, task_labels=False, shuffle=False)

model = nn.Sequential(
    nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
    nn.Sequential(nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.BatchNorm2d(64), nn.ReLU()),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)
lider = LiDER(model, stages=["0", "1"], alpha=0.1, beta=0.3)
strategy = Naive(
    model=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    criterion=nn.CrossEntropyLoss(),
    train_mb_size=32,
    train_epochs=2,
    eval_mb_size=256,
    plugins=[ReplayPlugin(mem_size=100), LiDERPlugin(lider)],
    evaluator=EvaluationPlugin(accuracy_metrics(stream=True), loggers=[]),
)
for experience in benchmark.train_stream:
    strategy.train(experience)
    accuracy = next(iter(strategy.eval(benchmark.test_stream).values()))
    print(f"after experience {experience.current_experience + 1}: {100 * accuracy:.1f} %")
print("λ:", [round(value, 3) for value in lider.constants.tolist()])
print("c:", [round(value, 3) for value in lider.targets.tolist()])
