"""Recordings for `dragoman demo` and for trials: NAME.ogg, and in NAME.json what is said in it."""
