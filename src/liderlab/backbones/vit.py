"""A vision transformer (Dosovitskiy et al., 2021) for small images, with timm's parameter names."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from ..errors import UserError, check_numbers, unknown

Pool = Literal["token", "mean"]
PATCHES, HEAD_WIDTH, MLP_RATIO = 8, 64, 4
"""At least so many patches along the shorter side, and so many channels in a head, unless the user
chooses; the MLP's hidden width in widths of the network. The latter two are timm's."""
EPS = 1e-6  # of LayerNorm, as in timm's weights


class PatchEmbed(nn.Module):
    """One token for each patch of the image, in reading order: (n, C, H, W) to (n, h·w, D)."""

    def __init__(self, channels: int, width: int, patch: int, grid_size: tuple[int, int]) -> None:
        super().__init__()
        self.grid_size = grid_size
        self.proj = nn.Conv2d(channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.proj(x)
        return maps.flatten(2).mT


class Attention(nn.Module):
    """softmax(q kᵀ / √d) v in every head, then a projection.

    In plain operations: PyTorch's fused attention has no second derivative, which the analyses of
    the loss's curvature need, and was 4 to 10 % faster in a training step on a CPU.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, _ = x.shape
        parts: Tensor = self.qkv(x).reshape(n, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = (self.scale * q @ k.mT).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, MLP_RATIO * width)
        self.fc2 = nn.Linear(MLP_RATIO * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(gelu(self.fc1(x)))


class Block(nn.Module):
    """x ← x + attention(norm(x)), x ← x + mlp(norm(x)): tokens (n, N, D) to tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, EPS), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, EPS), MLP(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Patches and a class token with learned positions, then blocks of attention and MLP.

    patch: side of a patch, which must divide both sides of the image; None takes the largest that
    leaves 8 patches along the shorter side (4 for 32x32 images, 8 for 64x64 ones), or else 1.
    depth: blocks. heads: of the attention, must divide the width; None takes heads of 64 channels,
    as all of timm's have, or one. pool: the features are the class token, or the mean of the
    patches' tokens.

    The stem's map is the projected patches, before the positions are added. A block's tokens have
    no activation at their end.

    >>> network = ViT(10, (3, 32, 32), width=16, depth=2)
    >>> network.patch_embed.grid_size, network(torch.zeros(5, 3, 32, 32)).shape
    ((8, 8), torch.Size([5, 10]))
    """

    def __init__(
        self,
        classes: int,
        image_shape: tuple[int, int, int],
        *,
        width: int = 192,
        depth: int = 6,
        heads: int | None = None,
        patch: int | None = None,
        pool: Pool = "token",
    ) -> None:
        super().__init__()
        check_numbers(width=width, heads=heads, patch=patch, at_least=1, at_most=2**20, whole=True)
        check_numbers(depth=depth, at_least=1, at_most=2**10, whole=True)
        if pool not in (allowed := ("token", "mean")):
            raise unknown("pool", str(pool), allowed)
        channels, *sides = image_shape
        patch = _patch(patch, sides[0], sides[1])
        grid = (sides[0] // patch, sides[1] // patch)
        self.pool = pool
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + grid[0] * grid[1], width))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.patch_embed = PatchEmbed(channels, width, patch, grid)
        heads = _heads(heads, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, EPS)
        self.head = nn.Linear(width, classes)
        blocks = {f"block{i + 1}": f"blocks.{i}" for i in range(depth)}
        self.taps = {"stem": "patch_embed.proj", **blocks}

    def features(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x)
        first = self.cls_token.expand(x.shape[0], -1, -1)  # len(x) would fix n in an export
        tokens = torch.cat([first, patches], 1) + self.pos_embed
        tokens = self.norm(self.blocks(tokens))
        return tokens[:, 0] if self.pool == "token" else tokens[:, 1:].mean(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def _patch(patch: int | None, height: int, width: int) -> int:
    fitting = _divisors(math.gcd(height, width))
    if patch is None:
        return max(p for p in fitting if p == 1 or min(height, width) >= PATCHES * p)
    if patch not in fitting:
        raise UserError(
            f"a patch of {patch} does not divide images of {height}x{width}: choose "
            f"backbone.patch among {', '.join(map(str, fitting))}"
        )
    return patch


def _heads(heads: int | None, width: int) -> int:
    fitting = _divisors(width)
    if heads is None:
        return max(h for h in fitting if h == 1 or width >= HEAD_WIDTH * h)
    if heads not in fitting:
        raise UserError(
            f"{heads} heads do not divide a width of {width}: choose backbone.heads among "
            f"{', '.join(map(str, fitting))}"
        )
    return heads


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
