#!/bin/sh
# sh recipes/claims/001.sh
# Paper 001: one offline model against models trained with k_train, at every k_test, with words
# counted by time and by CTC; Conformer against Transformer; distillation.
. "$(dirname "$0")/common.sh"
K="wait-k:k=1|3|5|7|9|11"
both() {
    ask "$1" "001/$1-fixed" --policies "$K" --policies offline --detector fixed --steps 280ms
    ask "$1" "001/$1-ctc" --policies "$K" --detector ctc --steps 280ms
}
ears spelling.en
train conformer.en-de conformer.en-de
both conformer.en-de
for k in 3 5 7 9 11; do
    for words in fixed ctc; do
        train waitk.en-de "waitk-$words-$k.en-de" task_settings.k=$k task_settings.words=$words
        ask "waitk-$words-$k.en-de" "001/waitk-$words-$k" --policies "$K" --detector $words --steps 280ms
    done
done
ears spelling-transformer.en
train transformer.en-de transformer.en-de
both transformer.en-de
train mt.en-de mt.en-de
dragoman distill runs/claims/mt.en-de packs/claims.en-de packs/claims-kd.en-de --device "${DEVICE:-cuda}"
train kd.en-de kd.en-de
both kd.en-de
dragoman carbon runs/claims/conformer.en-de
