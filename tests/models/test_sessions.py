"""What onnxruntime is told about nets that were exported."""

import pytest

from dragoman.models import byte_sums
from dragoman.models.exported.net import OnnxNet
from dragoman.store import home


@pytest.fixture
def shipped():
    return next(path for folder in home.weight_folders() if (path := folder / "mt-en").is_dir())


@pytest.mark.parametrize("exact", [True, False])
def test_exported_nets_sleep_while_they_wait_and_sum_up_exactly(shipped, monkeypatch, exact):
    monkeypatch.setattr(byte_sums, "are_exact", lambda: exact)
    net = OnnxNet(shipped, threads=2)
    for session in (net._encoder, net._decoder):
        options = session.get_session_options()
        assert options.intra_op_num_threads == 2
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        if exact:
            with pytest.raises(RuntimeError, match=byte_sums.OPTION):  # it was not set
                options.get_session_config_entry(byte_sums.OPTION)
        else:
            assert options.get_session_config_entry(byte_sums.OPTION) == "1"
