# What the claims' scripts share. Everything goes on where it was stopped: run the same command again.
set -eu
RECIPES=$(dirname "$0")
TEST=packs/claims-test.en-de/corpus.tsv
JOBS=${JOBS:-$(nproc)}

# train RECIPE NAME [SETTING...]: a run, exported as models/claims/NAME
train() {
    recipe=$1; name=$2; shift 2
    dragoman train "$RECIPES/$recipe.yaml" "$@" --run "runs/claims/$name"
    [ -d "models/claims/$name" ] || dragoman export "runs/claims/$name" "models/claims/$name"
}

# ears RECIPE: a run that others start from
ears() { dragoman train "$RECIPES/$1.yaml" --run "runs/claims/$1"; }

# ask NAME OUT OPTION...: a sweep of a trained net over the test set, searched greedily like the papers'
ask() {
    name=$1; out=$2; shift 2
    dragoman sweep "$TEST" "out/claims/$out" --model "models/claims/$name" --beams 1 --threads 1 \
        --jobs "$JOBS" "$@"
}
