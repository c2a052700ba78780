"""Attention policies at their edges."""

import pytest

from dragoman.errors import DragomanError
from dragoman.models import Draft
from dragoman.policies import AgreeAtt, AlignAtt, EDAtt


@pytest.mark.parametrize("policy", [AlignAtt(), AlignAtt(last=0), EDAtt(), AgreeAtt()])
def test_an_empty_draft_needs_no_attention(policy):
    assert policy.commit(Draft(), ()) == 0


@pytest.mark.parametrize("policy", [AlignAtt(), EDAtt(), AgreeAtt()])
def test_tokens_without_attention_are_refused(policy):
    with pytest.raises(DragomanError, match="carries no attention"):
        policy.commit(Draft(tokens=(7,), words=(" Hallo",), ends=(1,)), ())
