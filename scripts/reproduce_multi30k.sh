#!/usr/bin/env bash
# The scores of Multi30k English-German in docs/results.md: trains for an hour and a half, then compares greedy search, a beam and MBR.
# scripts/reproduce_multi30k.sh FOLDER [OPTION OF mt train]...     the folder has train, val and the three test sets, as NAME.en.gz and NAME.de.gz
# Everything is chosen on val; the test sets are read once, at the end. After a kill the same command goes on.
set -euo pipefail
[[ -f ${1:-}/train.en.gz ]] || { echo "usage: $0 FOLDER; in it train.en.gz, train.de.gz, val.en.gz, val.de.gz and test_2016_flickr.en.gz … are expected" >&2; exit 2; }
data=$(cd "$1" && pwd)
shift
source "$(dirname "${BASH_SOURCE[0]}")/setup"
install_project '.[dev]' # sacremoses, for the score of the papers
cd "$root"

run=runs/multi30k_en_de_long tests=(test_2016_flickr test_2017_flickr test_2017_mscoco)
files=(--set "data.train.0.src=$data/train.en.gz" --set "data.train.0.tgt=$data/train.de.gz")
files+=(--set "data.dev.src=$data/val.en.gz" --set "data.dev.tgt=$data/val.de.gz" --set "data.test={}")
"$python" -m mt train --config configs/multi30k_en_de_long.yaml --run-dir "$run" --resume "${files[@]}" "$@"

searches=(greedy beam mbr)
declare -A how=([greedy]="--greedy" [beam]="--beam 5" [mbr]="--beam 16 --mbr 16 --mbr-utility bleu")
for test in "${tests[@]}"; do
  given=()
  for search in "${searches[@]}"; do
    # shellcheck disable=SC2086 # several words
    "$python" -m mt translate --model "$run" --input "$data/$test.en.gz" --output "$run/reports/$test.$search.de" ${how[$search]}
    given+=(--hyp "$search=$run/reports/$test.$search.de")
  done
  printf '\n── %s: %s\n' "$test" "$(for search in "${searches[@]}"; do printf '%s (%s)  ' "$search" "${how[$search]}"; done)"
  "$python" -m mt compare --src "$data/$test.en.gz" --ref "$data/$test.de.gz" "${given[@]}" --show 0 --report "$run/reports/$test.compare.html"
done

printf '\n── as papers score test_2016_flickr; Transformer-Tiny of Wu et al. 2021, text only: 41.02\n'
for search in "${searches[@]}"; do
  printf '%-7s ' "$search"
  "$python" scripts/paper_bleu.py "$run/reports/test_2016_flickr.$search.de" "$data/test_2016_flickr.de.gz"
done
