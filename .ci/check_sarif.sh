#!/usr/bin/env bash
# The SARIF log of every fixture (and of the labelled corpus where it stands beside the checkout) against the 2.1.0 schema
# and GitHub's rules, by the Multitool: no error, and nothing of the GH rules.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:?the work folder}
python="$work/venv/bin/python"
logs="$work/sarif"; rm -rf "$logs"; mkdir -p "$logs"
count=0
for tree in fixtures/repos/*/ fixtures/files/*/ ../shared/corpus/; do
  [ -d "$tree" ] || continue
  name=$(echo "$tree" | tr '/.' '__')
  "$python" -m auditor scan "$tree" --profile strict --format sarif --fail-on never --output "$logs/$name.sarif"
  count=$((count + 1))
done
if ! command -v npm >/dev/null 2>&1; then
  echo "SKIPPED, LOUDLY: node is not here, so the Multitool did not look at $count logs (the tests hold them to the schema)"
  exit 0
fi
if [ ! -x "$work/multitool/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool" ]; then
  mkdir -p "$work/multitool"
  npm install --silent --no-audit --no-fund --prefix "$work/multitool" @microsoft/sarif-multitool-linux >"$work/npm.log" 2>&1 ||
    { echo "SKIPPED, LOUDLY: the Multitool could not be installed from npm"; tail -3 "$work/npm.log"; exit 0; }
fi
multitool="$work/multitool/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
for log in "$logs"/*.sarif; do
  "$multitool" validate "$log" --rule-kind "Sarif;Ghas" --level "Error;Warning;Note" -o "$log.out" --log ForceOverwrite >/dev/null 2>"$log.err" ||
    { echo "the Multitool failed on $log"; cat "$log.err"; exit 1; }
done
"$python" - "$logs" <<'P'
import json, sys
from pathlib import Path

bad = 0
for path in sorted(Path(sys.argv[1]).glob("*.out")):
    run = json.loads(path.read_text(encoding="utf-8-sig"))["runs"][0]
    for result in run.get("results", ()):
        if result.get("level") == "error" or result["ruleId"].startswith("GH"):
            bad += 1
            where = (result.get("locations") or [{}])[0].get("physicalLocation", {}).get("region", {})
            print(f"{path.name}: {result['ruleId']} {result.get('level')} {result.get('message')} {where}")
sys.exit(1 if bad else 0)
P
echo "SARIF: $count logs, 0 errors, 0 results of GitHub's rules"
