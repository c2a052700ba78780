"""An exported text net, and the cascade that it is the second half of."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.models.cascade.owners import owners
from dragoman.models.cascade.text_net import TextNet
from dragoman.models.load import exported_net, load_model
from dragoman.models.options import Options
from dragoman.policies import make_policy
from dragoman.train.data.pack import Pack
from dragoman.train.search import translate
from dragoman.train.trained import open_run
from tests.models.word_for_word import translated
from tests.scripted import COLOURS, chunks_of


def test_it_translates_as_the_trained_net_does(teacher, exported_teacher, sung):
    trained = open_run(teacher)
    made = TextNet.load(exported_teacher, options=Options(threads=1, beams=1))
    for item in Pack(sung).items[:10]:
        ids = trained.source.encode([item.text["en"]])
        with torch.no_grad():
            encoded = trained.task.net.encode(torch.tensor(ids), torch.tensor([len(ids[0])]))
        expected = translate(trained.task.net, encoded, beam=1)[0]
        words = [f" {word}" for word in item.text["en"].split()]
        found = translated(made, words, (), closed=True, pair=("en", "de"))
        assert list(found.tokens) == expected
        assert found.ended
        assert found.attention.shape == (len(expected), len(words))
        np.testing.assert_allclose(found.attention.sum(axis=1), 1, atol=1e-4)
        # Gone on with from any point, it says the rest.
        for said in range(len(expected)):
            rest = translated(made, words, expected[:said], closed=True, pair=("en", "de"))
            assert list(rest.tokens) == expected[said:]
        # A guess changes nothing, right or wrong, as far as it goes.
        for guess in ([expected[0]], expected[:-1] + [4, 5], [7] * 9, expected, [5, *expected]):
            same = translated(made, words, (), closed=True, pair=("en", "de"), guess=guess)
            assert same.tokens == found.tokens
            np.testing.assert_allclose(same.log_probs, found.log_probs, atol=1e-4)
            np.testing.assert_allclose(same.attention, found.attention, atol=1e-4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_pieces_belong_to_the_words_that_they_are_of(words, data):
    """Every word cut at random; then the same with a vocabulary that writes letters doubly."""
    pieces, wanted = [], []
    for number, size in enumerate(words):
        cuts = data.draw(st.sets(st.integers(1, size - 1)) if size > 1 else st.just(set()))
        bounds = [0, *sorted(cuts), size]
        pieces += ["x" * (b - a) for a, b in pairwise(bounds)]
        wanted += [number] * (len(bounds) - 1)
    texts = [" " + "x" * size for size in words]
    assert owners(pieces, texts) == wanted
    assert owners([2 * piece for piece in pieces], texts) == wanted


def test_a_cascade_hears_and_translates(exported_teacher):
    """The ears say colours, one every 400 ms; the mouth has learned them."""
    name = f"tests.scripted:colours+{exported_teacher}"
    assert exported_net(name).languages.target == "de"
    model = load_model(name, threads=1)
    for policy in ("offline", "local-agreement:n=2"):
        interpreter = Interpreter(model, make_policy(policy), target="de")
        said = [interpreter.hear(chunk).said for chunk in chunks_of(400 * len(COLOURS) + 800, 400)]
        words = "".join(word for words in said for word in words).split()
        assert words == list(COLOURS.values())
        first = next(number for number, words in enumerate(said) if words)
        assert (first == len(said) - 1) == (policy == "offline")


def test_halves_in_the_wrong_place(exported_teacher, exporter):
    with pytest.raises(DragomanError, match="hears speech; it cannot read text"):
        load_model(f"tests.scripted:colours+{exporter.folder_of('transformer')}")
    with pytest.raises(DragomanError, match="reads text; it cannot hear"):
        load_model(f"{exported_teacher}+{exported_teacher}")
    with pytest.raises(DragomanError, match="nowhere"):
        load_model("tests.scripted:colours+nowhere")


def test_a_net_with_several_targets_reads_a_tag(tagged):
    """The tag of the wanted language comes first; what looks at it looks at no word."""
    from dragoman.train.data.vocabulary import Pieces
    from dragoman.train.recipe import Units

    net, folder = tagged
    vocabulary = Pieces(folder / "target.model", Units("char", 60))
    made = TextNet.load(folder, options=Options(threads=1, beams=1))
    words, plain = [" one", " house"], vocabulary.encode(["one house"])[0]
    for code in ("de", "es"):
        pair = made.between("en", code)
        assert made._units_of(words, code)[0] == [vocabulary.tag(code), *plain]
        found = translated(made, words, (), closed=True, pair=pair)
        ids = torch.tensor([[vocabulary.tag(code), *plain]])
        with torch.no_grad():
            encoded = net.encode(ids, torch.tensor([ids.shape[1]]))
            expected = translate(net, encoded, 1, len(found.tokens))[0]
        assert list(found.tokens) == expected[: len(found.tokens)]
        assert found.tokens
        with torch.no_grad():
            tokens = torch.tensor([[1, *found.tokens[:-1]]])  # from the beginning of a sentence
            step = net.step(tokens, net.memory(encoded.states), encoded.lengths, net.begin(1))
        looks = step.attention[0, -1, :, 1:].numpy()  # without the tag's column
        words_of = owners([vocabulary.model.id_to_piece(number) for number in plain], words)
        by_word = np.stack([looks[:, np.array(words_of) == n].sum(axis=1) for n in (0, 1)], axis=1)
        np.testing.assert_allclose(found.attention, by_word, atol=1e-4)
    with pytest.raises(DragomanError, match="speaks 'de' and 'es', not 'fr'"):
        made.between("en", "fr")
