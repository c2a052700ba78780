"""The weights of joint speech-text training: Zaidi et al. 2022, equation 13."""

from dataclasses import dataclass

from dragoman.train.settings import Count, Level, Share


@dataclass(frozen=True)
class JointWeights:
    """L = (1 - kd) ST + kd KD + car CAR + mt MT + dar DAR + latency; the paper's values.

    The latency term carries its own weight and schedule (`latency.LatencyLoss`). Distillation
    starts at step `kd_after` (Tang 2021: 5,000), when the text side has something to teach.
    """

    kd: Share = 0.2
    car: Level = 0.02
    mt: Level = 0.5
    dar: Level = 0.01
    kd_after: Count = 0

    def at(self, step: int) -> dict[str, float]:
        """What each term counts at a step: st, kd, car, mt, dar."""
        kd = self.kd if step >= self.kd_after else 0.0
        return {"st": 1 - kd, "kd": kd, "car": self.car, "mt": self.mt, "dar": self.dar}
