#!/bin/sh
# sh recipes/claims/corpus.sh claims.en-de.tsv.xz    (the text: see choose.py)
# One voiced corpus with a fixed split: the first 500 rows of the text for dev, the next 1,000 for
# test, the rest for training; clean voices, true ends of words and phones. DEV, TEST and ROWS are
# the three sizes. Last, the units that all runs share.
set -eu
text=$1
dev=${DEV:-500} test=${TEST:-1000}
speak() {
    out=$1; shift
    dragoman voice "$text" "packs/$out" --columns en,de --rooms 0 --noise 0 --seed 7 "$@"
}
speak claims-dev.en-de --limit "$dev"
speak claims-test.en-de --skip "$dev" --limit "$test" --files
speak claims.en-de --skip "$((dev + test))" --limit "${ROWS:-600000}"
python "$(dirname "$0")/units.py" "$text" "$((dev + test))" packs/claims-units
