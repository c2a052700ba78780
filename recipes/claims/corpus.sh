#!/bin/sh
# sh recipes/claims/corpus.sh claims.en-de.tsv.xz    (the text: see choose.py)
# One voiced corpus with a fixed split: rows 1 to 500 of the text for dev, the next 1,000 for test,
# the rest for training; clean voices, true ends of words and phones. ROWS limits the last.
set -eu
text=$1
speak() {
    out=$1; shift
    dragoman voice "$text" "packs/$out" --columns en,de --rooms 0 --noise 0 --seed 7 "$@"
}
speak claims-dev.en-de --limit 500
speak claims-test.en-de --skip 500 --limit 1000 --files
speak claims.en-de --skip 1500 --limit "${ROWS:-600000}"
