"""`lider import-mammoth`."""


def test_import_mammoth(lider) -> None:
    code, out, err = lider(
        *("import-mammoth", "--model", "er", "--dataset", "seq-cifar10", "--lr", "0.1", "--x", "1")
    )
    assert code == 0
    assert out == (
        "lider run --benchmark split-cifar10 --backbone resnet18 --epochs 50 --batch-size 32 "
        "--method er --lr 0.1\n"
    )
    assert err == "note: --x has no counterpart here and is left out\n"
    code, _, err = lider("import-mammoth", "--model", "l2p", "--dataset", "seq-cifar10")
    assert code == 2
    assert err.startswith("lider: unknown model 'l2p'")
