#!/usr/bin/env bash
# The wheel, built and installed into a second clean environment, lists the same rules as the tree; so does the sdist's.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:?the work folder}
python="$work/venv/bin/python"
rm -rf "$work/dist" "$work/clean"
"$python" -m pip install --quiet build
"$python" -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
python3 -m venv "$work/clean"
"$work/clean/bin/python" -m pip install --quiet "$work"/dist/*.whl
expected=$("$python" -m auditor rules)
[ -n "$expected" ]
installed=$(cd "$work" && "$work/clean/bin/auditor" rules)
[ "$expected" = "$installed" ] || { echo "the wheel lists other rules than the tree"; diff <(echo "$expected") <(echo "$installed"); exit 1; }
# A tree audited by the installed wheel gives the same document as the checkout.
diff <("$python" -m auditor scan fixtures/repos/incident-glm --format json --fail-on never) \
     <("$work/clean/bin/auditor" scan fixtures/repos/incident-glm --format json --fail-on never)
tar -tzf "$work"/dist/*.tar.gz >"$work/sdist.txt"
for file in rules/version rules/capacity rules/code rules/engine; do
  grep -q "/$file/" "$work/sdist.txt" || { echo "the sdist lacks $file"; exit 1; }
done
echo "wheel and sdist hold the rules of the tree ($(echo "$expected" | grep -c '^  [a-z]') rules)"
