"""LiDER inside other frameworks; only the module of a framework imports it."""
