"""Our batched filterbank against kaldi-native-fbank."""

import numpy as np
import pytest
import torch

from dragoman.train.data.fbank import Fbank, frame_count


def kaldi(sound: np.ndarray, mels: int) -> np.ndarray:
    knf = pytest.importorskip("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = mels
    fbank = knf.OnlineFbank(options)
    fbank.accept_waveform(16000, sound.astype(np.float32).tolist())
    return np.stack([fbank.get_frame(n) for n in range(fbank.num_frames_ready)])


@pytest.mark.parametrize("mels", [40, 80])
def test_equals_kaldi(mels):
    random = np.random.default_rng(0)
    time = np.arange(24_000) / 16_000
    sound = 3000 * np.sin(2 * np.pi * (200 + 900 * time) * time) + 200 * random.standard_normal(
        24_000
    )
    expected = kaldi(sound, mels)
    ours, frames = Fbank(mels)(torch.from_numpy(sound[None]).float(), torch.tensor([24_000]))
    assert int(frames) == len(expected) == ours.shape[1]
    np.testing.assert_allclose(ours[0].numpy(), expected, atol=2e-3)


def test_padding_changes_nothing_and_frames_are_counted():
    sound = torch.randn(2, 4000) * 1000
    padded = torch.nn.functional.pad(sound, (0, 3000))
    fbank = Fbank()
    alone, count = fbank(sound, torch.tensor([4000, 4000]))
    together, same = fbank(padded, torch.tensor([4000, 4000]))
    assert torch.equal(count, same)
    # The sums of other shapes may be taken in another order.
    torch.testing.assert_close(together[:, : int(count[0])], alone, atol=1e-4, rtol=1e-5)
    assert frame_count(torch.tensor([399, 400, 559, 560])).tolist() == [0, 1, 1, 2]


def test_silence_is_finite():
    features, _ = Fbank()(torch.zeros(1, 1600), torch.tensor([1600]))
    assert torch.isfinite(features).all()
