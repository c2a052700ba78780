#!/bin/sh
# sh recipes/claims/000.sh    (after 001.sh, whose ears and units it uses)
# Paper 000: quality and lag against the step, for wait-k and MMA; fixed steps against true ends of
# words and phones. `trigger=next` is equation 3: a word is noticed with the first state of the next.
. "$(dirname "$0")/common.sh"
NEXT="task_settings.trigger=next"
LEARNED="net_settings.decisions=learned net_settings.encoder_settings.boundaries=true"
for ratio in 3 5 7 9 11 13; do
    ms=$((40 * ratio))
    train mma.en-de "mma-$ms.en-de" net_settings.ratio=$ratio
    ask "mma-$ms.en-de" "000/mma-$ms" --policies follow --steps ${ms}ms
    train waitk.en-de "waitk-$ms.en-de" task_settings.k=5 task_settings.ratio=$ratio
    ask "waitk-$ms.en-de" "000/waitk-$ms" --policies "wait-k:k=1|3|5|7" --detector fixed --steps ${ms}ms
done
for ends in words phones; do
    # shellcheck disable=SC2086
    train mma.en-de "mma-$ends.en-de" data.ends=$ends task_settings.decisions=oracle $NEXT $LEARNED
    ask "mma-$ends.en-de" "000/mma-$ends" --policies follow --steps 280ms
done
