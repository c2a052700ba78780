"""Equation 13's weights."""

from dragoman.train.losses.multitask import JointWeights


def test_distillation_takes_over_a_share_of_the_speech_loss_at_its_step():
    weights = JointWeights(kd=0.25, car=0.02, mt=0.5, dar=0.01, kd_after=5)
    others = {"car": 0.02, "mt": 0.5, "dar": 0.01}
    assert weights.at(4) == {"st": 1.0, "kd": 0.0, **others}
    assert weights.at(5) == {"st": 0.75, "kd": 0.25, **others}


def test_weights_that_nobody_sets_are_those_of_the_paper():
    """A recipe that names none is Zaidi's: kd 0.2 from the first step, 0.02, 0.5 and 0.01."""
    wanted = {"st": 0.8, "kd": 0.2, "car": 0.02, "mt": 0.5, "dar": 0.01}
    assert JointWeights().at(0) == wanted
