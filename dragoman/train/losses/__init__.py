"""The losses of the papers.

Every loss is a SUM over the batch, over tokens or over sentences, as the papers' weights assume;
whoever trains divides the weighted total by the number of target tokens. Float32 inside, whatever
autocast says. B batch, U target units, V vocabulary, S source states, H heads.
"""
