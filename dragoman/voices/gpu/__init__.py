"""Networks of voices on a GPU, by torch: to voice whole corpora."""
