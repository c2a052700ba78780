"""The translator that ships, by its graphs and by the engine for GPUs."""

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.cascade.text_net import TextNet
from dragoman.models.cascade.translator import Sentence
from dragoman.models.exported.config import ExportedNet
from dragoman.models.options import Options
from dragoman.store import get

torch = pytest.importorskip("torch")

from dragoman.models.cascade.gpu.engine import TorchEngine  # noqa: E402

pytestmark = pytest.mark.weights
TEXT = """\
Mr President, I would like to thank the rapporteur for her excellent work on this report.
We have to make sure that clean water is available for everyone in the world.
The commission has presented a proposal.
I do not agree.
It is quite clear that the member states must do more to fight unemployment, and do it now.
What are you going to do about it?
He opened the window because it was hot.
Good schools are more important than new roads.
The vote will take place tomorrow at noon.
My children live in Berlin and they like it very much.
There are many people who cannot read this.
Thank you very much for your attention.
In the last ten years the price of energy has doubled, which is a burden for families.
She told me that she would come back next week.
Yes.
The fishing industry in our region is in a serious crisis.
I hope that the council will listen to us this time, because we have asked again and again.
Where is the station?
Tom has never been to Boston.
We should therefore reject the amendment and support the original text of the commission.
""".splitlines()


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def translators() -> tuple[TextNet, TextNet]:
    """By the graphs, and by torch in floats."""
    try:
        folder = get("mt-en")
    except DragomanError as error:
        pytest.skip(f"no weights: {error}")
    options = Options(threads=1, device="cpu", compute="float32")
    graphs, torches = (TextNet.load(folder, "mt-en", options) for _ in range(2))
    torches._engine = TorchEngine.load(folder, ExportedNet.read(folder), options)
    return graphs, torches


@pytest.mark.parametrize("target", ["de", "es"])
@pytest.mark.parametrize("closed", [True, False])  # five beams, one
def test_both_engines_say_the_same(translators, target, closed):
    """But for a word now and then: the graphs round what flows between layers to eight bits."""
    sentences = [
        Sentence(tuple(f" {word}" for word in line.split()), ("en", target), closed=closed)
        for line in TEXT
    ]
    found, expected = (one.translate(sentences) for one in translators)
    same = [pair for pair in zip(found, expected, strict=True) if pair[0].tokens == pair[1].tokens]
    assert len(same) > len(sentences) / 2
    assert all(made.tokens for made in found)
    for one, other in same:
        assert one.ended == other.ended
        np.testing.assert_allclose(one.attention, other.attention, atol=0.1)
        np.testing.assert_allclose(np.exp(one.log_probs), np.exp(other.log_probs), atol=0.2)
