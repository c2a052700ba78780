#!/bin/sh
# TEXT=europarl.en-de.tsv.xz sh recipes/end-to-end.sh [SETTING=VALUE...]
#
# From text to a model that hears English and writes German and Spanish: speaks the text, has a text
# model translate it, trains recipes/grafted.en-x.yaml (with the settings given), exports, and tries
# the model on spoken sentences that it has not learned from. Run it in the repository's root.
#
# Every part goes on where it was stopped: run the same command again. With LIMIT it stops by itself
# after so many seconds (status 75). Training takes UPDATES, or MINUTES if that is less.
set -eu
ROWS=${ROWS:-120000}              # of the text to learn from; the first DEV_ROWS are tried
DEV_ROWS=${DEV_ROWS:-600}
TEXT_COLUMNS=${TEXT_COLUMNS:-en,de,_,_}
# Who speaks: a net that has heard real speech understands the neural voice three times as well, but
# that is one voice, and a sixth as fast.
VOICES=${VOICES:-espeak*0.5,hibari*0.5}
DEVICE=${DEVICE:-cpu}             # that neural voices run on; a GPU makes Kokoro affordable: cuda
LANGUAGES=${LANGUAGES:-de es}     # that the teacher writes and the model learns
TEACHER=${TEACHER:-weights/mt-en}
BEAM=${BEAM:-4}                   # of the teacher
PACKS=${PACKS:-packs/e2e}         # -dev, -de and so on are added
RUN=${RUN:-runs/end-to-end}
MODEL=${MODEL:-models/end-to-end}
TRIED=${TRIED:-60}                # sentences to try the model on,
JOBS=${JOBS:-$(nproc)}            # so many at a time
RECIPE=${RECIPE:-recipes/grafted.en-x.yaml}
UPDATES=${UPDATES:-16000}
MINUTES=${MINUTES:-0}
LIMIT=${LIMIT:-1000000}
begun=$(date +%s)

part() {  # name, then a command that may take what is left of the time
    name=$1; shift
    left=$((LIMIT - $(date +%s) + begun))
    echo "[$(($(date +%s) - begun)) s] $name"
    status=0
    if [ "$left" -gt 0 ]; then timeout -k 10 "$left" "$@" || status=$?; else status=124; fi
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        echo "out of time: $name is not done; the same command goes on with it"
        exit 75
    fi
    return "$status"
}
speak() {
    out=$1; shift
    # Long sentences are left out, and corpora have many: that is no fault.
    part "speaking $out" dragoman voice "$TEXT" "$out" --columns "$TEXT_COLUMNS" --max-words 40 \
        --fault-limit 0.5 --voices "$VOICES" --device "$DEVICE" "$@"
}
packs() {  # a list of the packs with an ending, one for each language
    list=
    for code in $LANGUAGES; do list="$list${list:+,}$PACKS$1-$code"; done
    echo "[$list]"
}

: "${TEXT:?say with TEXT which parallel text is spoken, one sentence and its translations a row}"
speak "$PACKS-dev" --limit "$DEV_ROWS" --files --seed 2
speak "$PACKS" --skip "$DEV_ROWS" --limit "$ROWS" --join 0.25 --cut 0.2 --rooms 0.3 --noise 0.3
translate() {
    for some in "$PACKS-dev" "$PACKS"; do
        [ -f "$some-$1/pack.json" ] || part "translating $some into $1" \
            dragoman distill "$TEACHER" "$some" "$some-$1" --to "$1" --beam "$BEAM"
    done
}
# All languages at a time: a good part of it is starting.
pids= status=0
for code in $LANGUAGES; do translate "$code" & pids="$pids $!"; done
for pid in $pids; do wait "$pid" || status=$?; done
[ "$status" -eq 0 ] || exit "$status"

targets=$(echo "$LANGUAGES" | tr ' ' ,)
if [ ! -f "$RUN/final.pt" ]; then
    part training dragoman train "$RECIPE" --run "$RUN" \
        "data.train=$(packs '')" "data.dev=$(packs -dev)" "data.target=$targets" \
        "steps.total=$UPDATES" "steps.minutes=$MINUTES" "$@"
fi
[ -d "$MODEL" ] || part exporting dragoman export "$RUN" "$MODEL" --int8
# The sentences that it is tried on have the translations of the text, and no others.
tried=
for code in $LANGUAGES; do
    case ",$TEXT_COLUMNS," in *",$code,"*) tried=${tried:-$code} ;; esac
done
if [ -n "$tried" ]; then
    part trying dragoman evaluate "$PACKS-dev/corpus.tsv" --model "$MODEL" --from en \
        --to "$tried" --limit "$TRIED" --jobs "$JOBS" --threads 1 --output "$RUN/tried"
else
    echo "not tried: $TEXT has no translation into $LANGUAGES to compare with"
fi
echo "[$(($(date +%s) - begun)) s] done: $MODEL"
