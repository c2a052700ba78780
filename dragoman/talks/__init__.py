"""Recordings for `dragoman demo` and for trials: NAME.ogg, and in NAME.tsv what is said in it."""
