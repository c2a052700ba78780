#!/bin/sh
# sh recipes/claims/corpus.sh claims.en-de.tsv.xz    (the text: see choose.py)
# One voiced corpus with a fixed split: the first 500 rows of the text for dev, the next 1,000 for
# test, the rest for training; clean voices, true ends of words and phones. DEV, TEST and ROWS are
# the three sizes. Last, the units that all runs share. TO=pt: the same of a text in Portuguese.
set -eu
text=$1 to=${TO:-de}
units=packs/claims-units
[ "$to" = de ] || units=$units.$to
dev=${DEV:-500} test=${TEST:-1000}
speak() {
    out=$1; shift
    dragoman voice "$text" "packs/$out.en-$to" --columns "en,$to" --rooms 0 --noise 0 --seed 7 "$@"
}
speak claims-dev --limit "$dev"
speak claims-test --skip "$dev" --limit "$test" --files
speak claims --skip "$((dev + test))" --limit "${ROWS:-600000}"
python "$(dirname "$0")/units.py" "$text" "$((dev + test))" "$units"
