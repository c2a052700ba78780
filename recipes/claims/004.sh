#!/bin/sh
# sh recipes/claims/004.sh    (after 001.sh, whose units it uses)
# Paper 004: the ladder of its Table 3, each rung with three seeds.
. "$(dirname "$0")/common.sh"
W=task_settings.weights
rung() {
    name=$1; shift
    for seed in 1 2 3; do
        train joint.en-de "joint-$name-$seed.en-de" seed=$seed "$@"
        ask "joint-$name-$seed.en-de" "004/$name-$seed" --policies follow --steps 280ms
    done
}
rung plain augment.spec=none
rung augmented
rung multitask $W.mt=0.5
rung kd $W.mt=0.5 $W.kd=0.2
rung car $W.mt=0.5 $W.kd=0.2 $W.car=0.02
rung dar $W.mt=0.5 $W.kd=0.2 $W.car=0.02 $W.dar=0.01
