"""LiDER inside other frameworks; each module needs its framework and nothing else does."""
