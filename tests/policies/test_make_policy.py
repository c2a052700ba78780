"""Policies from their names on the command line."""

from dataclasses import asdict, dataclass

import pytest

from dragoman.errors import DragomanError
from dragoman.policies import POLICIES, Policy, WaitK, make_policy


@dataclass(frozen=True)
class Halves(Policy):
    """Somebody's own: says a share of every draft."""

    share: float = 0.5

    def commit(self, draft, past):
        return int(self.share * len(draft.tokens))


@dataclass(frozen=True)
class Bare(Policy):
    share: float


HERE = __name__


def test_knobs_are_parsed_by_type():
    policy = make_policy("wait-k:k=5, strict=yes")
    assert policy == WaitK(k=5, strict=True)
    assert make_policy("wait-k", k=7) == WaitK(k=7)
    assert make_policy("wait-k:k=5", strict=True) == WaitK(k=5, strict=True)
    assert make_policy("wait-k:strict=no") == WaitK()


def test_a_policy_of_your_own_is_named_by_where_it_is():
    assert make_policy(f"{HERE}.Halves:share=0.25") == Halves(0.25)


def test_what_a_name_alone_means():
    wait_k = {"k": 3, "strict": False, "force_finish": True, "avoid_eos_while_reading": False}
    assert {name: asdict(make_policy(name)) for name in POLICIES} == {
        "greedy": {},
        "offline": {},
        "wait-k": wait_k,
        "ksn": {"k": 200, "s": 20, "n": 2},
        "confidence": {"gamma": 0.5, "measure": "speech"},
        "consensus": {"alpha": 0.75},
        "local-agreement": {"n": 2},
        "edatt": {"alpha": 0.1, "last": 80.0},
        "alignatt": {"last": 160.0},
        "agreeatt": {"old": 1500.0, "alone": 2500.0, "sure": 0.8, "n": 2},
        "follow": {},
    }


@pytest.mark.parametrize(
    "spec",
    [
        *("ksn:k=1,s=1,n=1", "edatt:alpha=0", "edatt:alpha=1", "agreeatt:old=0,alone=0"),
        *(
            "agreeatt:old=700,alone=700",
            "alignatt:last=0",
            "consensus:alpha=0",
            "consensus:alpha=1",
        ),
        *("local-agreement:n=2", "wait-k:k=1", "edatt:last=0.5", "confidence:gamma=1"),
    ],
)
def test_knobs_may_be_turned_to_their_ends(spec):
    make_policy(spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("wait-q", "There is no policy 'wait-q'. Did you mean 'wait-k'?"),
        ("consensus:alfa=1", "Policy 'consensus' has no knob 'alfa'. Did you mean 'alpha'?"),
        ("wait-k:k", "'k' in policy 'wait-k:k' should read key=value."),
        ("wait-k:k=three", "Knob 'k' of policy 'wait-k' takes a whole number, not 'three'."),
        (
            "wait-k:strict=maybe",
            "Knob 'strict' of policy 'wait-k' takes true or false, not 'maybe'.",
        ),
        ("wait-k:k=0", "wait-k needs k of 1 or more, not 0."),
        ("ksn:s=0", "(k, s, N) are each 1 or more, not (200, 0, 2)."),
        ("consensus:alpha=2", "The consensus threshold alpha must lie between 0 and 1, not 2.0."),
        (
            "consensus:alpha=1.01",
            "The consensus threshold alpha must lie between 0 and 1, not 1.01.",
        ),
        (
            "confidence:gamma=1.1",
            "The confidence threshold gamma must lie between 0 and 1, not 1.1.",
        ),
        ("confidence:measure=x", "The confidence policy measures 'speech' or 'tokens', not 'x'."),
        ("local-agreement:n=1", "Local agreement compares 2 drafts or more, not 1."),
        ("agreeatt:n=1", "AgreeAtt compares 2 drafts or more, not 1."),
        (
            "agreeatt:old=3000,alone=2000",
            "AgreeAtt needs 0 <= old <= alone (in ms), not 3000 and 2000.",
        ),
        ("alignatt:last=-1", "AlignAtt holds back 0 ms of sound or more, not -1."),
        ("alignatt:last=inf", "AlignAtt holds back 0 ms of sound or more, not inf."),
        (
            "edatt:last=inf",
            "EDAtt needs alpha between 0 and 1 and more than 0 ms of sound, not 0.1 and inf.",
        ),
        (
            "edatt:alpha=1.1",
            "EDAtt needs alpha between 0 and 1 and more than 0 ms of sound, not 1.1 and 80.",
        ),
        (
            "edatt:last=0",
            "EDAtt needs alpha between 0 and 1 and more than 0 ms of sound, not 0.1 and 0.",
        ),
        ("greedy:x=1", "Policy 'greedy' has no knob 'x'. There are: none."),
        ("zzz", f"There is no policy 'zzz'. There are: {', '.join(POLICIES)}."),
        ("no.such.Policy", "There is no policy 'no.such.Policy' (No module named 'no')."),
        (".Halves", "There is no policy '.Halves' (Empty module name)."),
        ("os.path.join", "'os.path.join' is no policy: one is a subclass of dragoman's Policy."),
        (
            "dragoman.models.Draft",  # a class, and with knobs, but of something else
            "'dragoman.models.Draft' is no policy: one is a subclass of dragoman's Policy.",
        ),
        (
            f"{HERE}.Halves:shares=1",
            f"Policy '{HERE}.Halves' has no knob 'shares'. Did you mean 'share'?",
        ),
        (f"{HERE}.Bare", f"Knob 'share' of policy '{HERE}.Bare' has no value to begin with."),
    ],
)
def test_bad_specs_get_a_sentence(spec, sentence):
    with pytest.raises(DragomanError) as caught:
        make_policy(spec)
    assert str(caught.value) == sentence
