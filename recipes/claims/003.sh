#!/bin/sh
# sh recipes/claims/003.sh
# Paper 003: characters against BPE, offline and over (k, s, N).
. "$(dirname "$0")/common.sh"
train vgg.en-de vgg-char.en-de
train vgg.en-de vgg-bpe400.en-de vocabulary.target.kind=bpe vocabulary.target.size=400
train vgg.en-de vgg-bpe2k.en-de vocabulary.target.kind=bpe vocabulary.target.size=2000
for units in char bpe400 bpe2k; do
    ask "vgg-$units.en-de" "003/$units" --policies offline --policies "ksn:k=100|200,s=10|20,n=1|2|3" \
        --steps 100ms
done
