"""The recordings of `dragoman demo` and of trials: NAME.ogg, and NAME.tsv with what is said until when."""
