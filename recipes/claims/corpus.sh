#!/bin/sh
# sh recipes/claims/corpus.sh europarl.en-de.tsv.xz
# One voiced corpus with a fixed split: rows 1 to 10,000 of the text for dev, the next 10,000 for
# test, the rest for training; sentences of at most 14 words, clean voices, true ends of words and
# phones. Longer sentences count as faults, hence the limit.
set -eu
text=$1
speak() {
    out=$1; shift
    dragoman voice "$text" "packs/$out" --columns en,de,_,_ --max-words 14 --rooms 0 --noise 0 \
        --seed 7 --fault-limit 1 "$@"
}
speak claims-dev.en-de --limit 10000
speak claims-test.en-de --skip 10000 --limit 10000 --files
speak claims.en-de --skip 20000 --limit 600000
