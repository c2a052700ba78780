"""How tests begin processes that train: as copies of their own, since to import torch and Lightning
anew takes many times as long as what is tested. CUDA does not outlive that."""

import torch

METHOD = "spawn" if torch.cuda.is_available() else "fork"
