#!/usr/bin/env bash
# Pre-training on several machines. On each of them, with the same list and its own place in it, from 0:
#
#     bash examples/several_devices/machines.sh 0 host-a:9000,host-b:9000 \
#         --corpus 'text/*.txt' --vocabulary vocab.txt --output /shared/run --batch-size 512
#
# The first machine writes the run's folder, which all must see. If one fails, the others end, and each begins again up
# to RETRIES times (10), to go on from the last checkpoint.
set -uo pipefail

index=$1 addresses=$2
shift 2
workers=$(printf '"%s", ' ${addresses//,/ })
export TF_CONFIG="{\"cluster\": {\"worker\": [${workers%, }]}, \"task\": {\"type\": \"worker\", \"index\": $index}}"

for attempt in $(seq 0 "${RETRIES:-10}"); do
    keras-elmo pretrain --strategy multiworker --or-resume "$@"
    status=$?
    # 0: the run is at its end. 130 and 143: somebody stopped it.
    case $status in 0 | 130 | 143) break ;; esac
    echo "Attempt $attempt ended with status $status." >&2
done
exit "$status"
