"""Attention policies at their edges."""

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models import Draft
from dragoman.policies import AgreeAtt, AlignAtt, EDAtt


@pytest.mark.parametrize("policy", [AlignAtt(), AlignAtt(last=0), EDAtt(), AgreeAtt()])
def test_an_empty_draft_needs_no_attention(policy):
    assert policy.commit(Draft(), ()) == 0


def test_words_that_look_at_no_sound_wait():
    """Sound of no length has no frames; only who holds nothing back says what is drafted."""
    blind = Draft((7,), (" Hallo",), (1,), attention=np.zeros((1, 0), np.float32), frame_ms=20.0)
    assert [p.commit(blind, ()) for p in (AlignAtt(), EDAtt(), AgreeAtt())] == [0, 0, 0]
    assert AlignAtt(last=0).commit(blind, ()) == 1


@pytest.mark.parametrize("policy", [AlignAtt(), EDAtt(), AgreeAtt()])
def test_tokens_without_attention_are_refused(policy):
    with pytest.raises(DragomanError, match="carries no attention"):
        policy.commit(Draft(tokens=(7,), words=(" Hallo",), ends=(1,)), ())
