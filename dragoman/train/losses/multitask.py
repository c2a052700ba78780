"""The weights of joint speech-text training: Zaidi et al. 2022, equation 13."""

from dataclasses import dataclass


@dataclass(frozen=True)
class JointWeights:
    """L = (1 - kd) ST + kd KD + car CAR + mt MT + dar DAR + latency; the paper's values.

    The latency term carries its own weight and schedule (`latency.LatencyLoss`). Distillation
    starts at step `kd_after` (Tang 2021: 5,000), when the text side has something to teach.
    """

    kd: float = 0.2
    car: float = 0.02
    mt: float = 0.5
    dar: float = 0.01
    kd_after: int = 0

    def at(self, step: int) -> dict[str, float]:
        """What each term counts at a step: st, kd, car, mt, dar."""
        kd = self.kd if step >= self.kd_after else 0.0
        return {"st": 1 - kd, "kd": kd, "car": self.car, "mt": self.mt, "dar": self.dar}
