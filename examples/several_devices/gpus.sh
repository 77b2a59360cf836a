#!/usr/bin/env bash
# Pre-training on all GPUs of one machine; CUDA_VISIBLE_DEVICES=0,1 takes two of them.
#
#     bash examples/several_devices/gpus.sh --corpus 'text/*.txt' --vocabulary vocab.txt --output run --batch-size 256
#
# The batch is that of all GPUs together; its rows are shared out evenly. Started again, the run goes on.
exec keras-elmo pretrain --strategy mirrored --or-resume "$@"
