#!/usr/bin/env bash
# Both hooks, run by the real pre-commit program on a scratch repository made from the incident's tree.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
work=${1:?the work folder}
"$work/venv/bin/python" -m pip install --quiet pre-commit
pre_commit="$work/venv/bin/pre-commit"
# a copy of the checkout as the hook repository: pre-commit installs from a git revision
hook="$work/hook-repo"; scratch="$work/hook-scratch"; log="$work/hooks.log"
rm -rf "$hook" "$scratch"; mkdir -p "$hook" "$scratch"
git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c '[ -f "{}" ] && cp --parents "{}" "$0"' "$hook" || true
export GIT_AUTHOR_NAME=ci GIT_AUTHOR_EMAIL=ci@example.com GIT_COMMITTER_NAME=ci GIT_COMMITTER_EMAIL=ci@example.com
export PRE_COMMIT_HOME="$work/pre-commit-home"
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE || true
git -C "$hook" init -q && git -C "$hook" add -A && git -C "$hook" commit -qm hooks
revision=$(git -C "$hook" rev-parse HEAD)
cd "$scratch"
git init -q
config() { printf 'repos:\n  - repo: %s\n    rev: %s\n    hooks: [{id: %s}]\n' "$hook" "$revision" "$1" >.pre-commit-config.yaml; }
fail() { echo "hooks: $1"; cat "$log"; exit 1; }
stopped() { if git commit -qm "$1" >"$log" 2>&1; then fail "$1: the commit was not stopped"; fi; grep -q "$2" "$log" || fail "$1: the log does not name $2"; }
passes() { git commit -qm "$1" >"$log" 2>&1 || fail "$1: the commit was stopped"; }

for id in auditor auditor-files; do
  rm -rf "$scratch"/* "$scratch"/.env "$scratch"/.git; git init -q; config "$id"
  "$pre_commit" install >/dev/null
  cp -r "$top/fixtures/repos/incident-glm/." .
  git add -A; stopped "$id: the exposed tree" sglang-vulnerable-version
  rm -rf ./* .env; cp -r "$top/fixtures/repos/incident-glm-fixed/." .
  git add -A; passes "$id: the repaired tree"
  # one file
  printf 'sglang==0.5.19\n' >one.txt; git add one.txt; stopped "$id: one file" one.txt
  printf 'sglang==0.5.22\n' >one.txt; git add one.txt; passes "$id: one file, safe"
  # fifty files
  mkdir many; for n in $(seq 50); do printf 'name: s%s\nimage: nginx:1.29\n' "$n" >"many/s$n.yaml"; done
  git add many; passes "$id: fifty files of no interest"
  printf 'image: lmsysorg/sglang:v0.5.19\n' >>many/s7.yaml; git add many; stopped "$id: one of fifty" many/s7.yaml
  git checkout -q HEAD -- many; git reset -q
  # none that the hook selects
  printf 'x' >logo.png; git add logo.png; passes "$id: nothing to look at"
  # deleted and renamed
  git rm -q many/s1.yaml; git mv many/s2.yaml many/t2.yaml; passes "$id: deleted and renamed"
  # partially staged: what is staged is safe, what is not is exposed
  printf 'sglang==0.5.23\n' >one.txt; git add one.txt; printf 'sglang==0.5.19\n' >one.txt
  passes "$id: partially staged, the staged part is safe"
  grep -q '0.5.19' one.txt || fail "$id: the unstaged change was lost"
  git checkout -q -- one.txt
done
echo "hooks: both ran through pre-commit $("$pre_commit" --version | cut -d' ' -f2): stopped on the exposed tree, passed on the repaired one"
