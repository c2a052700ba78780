"""The total of joint speech-text training: Zaidi et al. 2022, equation 13."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class JointWeights:
    """L = (1 - kd) ST + kd KD + car CAR + mt MT + dar DAR + latency; the paper's values.

    The latency term carries its own weight and schedule (`latency.LatencyLoss`). Distillation
    starts after `kd_after` steps (Tang 2021: 5,000), when the text side has something to teach.
    """

    kd: float = 0.2
    car: float = 0.02
    mt: float = 0.5
    dar: float = 0.01
    kd_after: int = 0

    def total(self, terms: Mapping[str, Tensor], step: int) -> Tensor:
        """Terms by name: st, and of kd, car, mt, dar, latency those that were computed."""
        kd = self.kd if "kd" in terms and step >= self.kd_after else 0.0
        weights = {
            "st": 1 - kd,
            "kd": kd,
            "car": self.car,
            "mt": self.mt,
            "dar": self.dar,
            "latency": 1.0,
        }
        return sum(weights[name] * term for name, term in terms.items())
