#!/usr/bin/env bash
# Installs the other implementations: a Python environment for each file in requirements/, since they
# need different versions of the same packages, and a folder of npm packages. Each file lists all
# packages, as `pip freeze` does. All are in `ecosystem` in MCP_INTEROP_DIR (default: a folder in the
# user's cache).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${MCP_INTEROP_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mcp-interop}/ecosystem
mkdir -p "$dir/node"
for file in "$here"/requirements/*.txt; do
  name=$(basename "$file" .txt)
  # Installed before, from the same file.
  cmp --silent "$file" "$dir/$name/requirements.txt" && continue
  [ -x "$dir/$name/bin/python" ] || python3 -m venv "$dir/$name"
  # Only the modules that are imported get compiled, by Python.
  "$dir/$name/bin/pip" install --quiet --disable-pip-version-check --no-compile --no-deps -r "$file"
  cp "$file" "$dir/$name/requirements.txt"
done
if ! cmp --silent "$here/package-lock.json" "$dir/node/package-lock.json"; then
  cp "$here/package.json" "$dir/node/"
  cp "$here/package-lock.json" "$dir/node/incomplete.json"
  (cd "$dir/node" && mv incomplete.json package-lock.json &&
    npm ci --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null ||
    { rm package-lock.json; exit 1; })
fi
echo "other implementations are in $dir"
