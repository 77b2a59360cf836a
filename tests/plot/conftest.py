import pytest

pytest.importorskip("matplotlib", reason="matplotlib not installed (extra `plot`)")

from matplotlib.figure import Figure


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    saved = []
    real = Figure.savefig

    def savefig(figure, *args, **options):
        saved.append(figure)
        real(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return saved
