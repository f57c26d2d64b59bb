#!/usr/bin/env bash
# run.sh PROGRAMS: tests everything-server and mcp-inspect in the folder PROGRAMS with other
# implementations: clients, servers, an authorization server and proxies. Prints a line for each
# pair, then `N passed, M failed`. `setup.sh` installs them.
set -uo pipefail
programs=$(realpath "${1:?the folder of everything-server and mcp-inspect}")
cd "$(dirname "${BASH_SOURCE[0]}")"

dir=${MCP_INTEROP_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mcp-interop}/ecosystem
node=$dir/node/node_modules
server=("$programs/everything-server" --stdio --no-tasks)
inspect=("$programs/mcp-inspect" --timeout 25)
log=$(mktemp -d "${TMPDIR:-/tmp}/ecosystem.XXXXXX")
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done; rm -rf "$log"' EXIT
passed=0 failed=0
# mcp-remote stores what it knows about servers in HOME.
export HOME=$log MCP_ECOSYSTEM_NODE=$node

# verdict LABEL TEXT COMMAND...: checks that a command succeeds and prints the text within 40 s.
verdict() {
  local label=$1 text=$2
  shift 2
  if timeout -k 5 40 "$@" >"$log/out" 2>"$log/err" && grep -qF -- "$text" "$log/out"; then
    passed=$((passed + 1))
    echo "pass  $label"
  else
    failed=$((failed + 1))
    echo "FAIL  $label"
    { tail -n 20 "$log/out"; tail -n 5 "$log/err"; } | cut -c -400 | sed 's/^/        /'
  fi
}

# free_port: prints a port on which nothing listens.
free_port() {
  python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# listen PORT COMMAND...: starts a server, which `ready` waits for.
listen() {
  local port=$1
  shift
  # No longer than everything here takes.
  timeout -k 5 400 "$@" >"$log/server.$port" 2>&1 &
  started+=($!)
}

# ready PORT: waits until a server listens on the port.
ready() {
  for _ in $(seq 400); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.1
  done
  tail -n 20 "$log/server.$1"
}

echo_call=(call echo '{"text":"hi there"}')

# calls LABEL WHERE...: checks that our client calls a tool.
calls() {
  verdict "$1" "hi there" "${inspect[@]}" "${echo_call[@]}" "${@:2}"
}

# --- Servers start while the clients of ours run ---------------------------------------------------

gateway_sse=$(free_port) gateway_http=$(free_port) proxy=$(free_port) protected=$(free_port)
own=$(free_port)
listen "$gateway_sse" node "$node/.bin/supergateway" --stdio "${server[*]}" --outputTransport sse \
  --port "$gateway_sse" --logLevel none
listen "$gateway_http" node "$node/.bin/supergateway" --stdio "${server[*]}" \
  --outputTransport streamableHttp --port "$gateway_http" --logLevel none
listen "$proxy" "$dir/mcp-proxy/bin/mcp-proxy" --port "$proxy" -- "${server[@]}"
listen "$protected" "$dir/fastmcp/bin/python" fastmcp_authorization.py "$protected"
listen "$own" "$programs/everything-server" --http "127.0.0.1:$own" --legacy-sse --no-tasks

# --- Hosts of models with our server ---------------------------------------------------------------
# Each converts the schemas of all tools for its model, calls `echo`, and prints the result.

for host in smolagents semantic-kernel autogen; do
  verdict "$host -> the server, stdio" "hi there" \
    "$dir/$host/bin/python" "${host//-/_}_client.py" "${server[@]}"
done

# --- Our client with servers of others -------------------------------------------------------------

fastmcp=(node fastmcp_server.mjs)
verdict "mcp-inspect -> npm fastmcp, check" '"ok": true' "${inspect[@]}" check -- "${fastmcp[@]}"
calls "mcp-inspect -> npm fastmcp, a tool" -- "${fastmcp[@]}"
verdict "mcp-inspect -> npm fastmcp, a prompt without arguments" "Good day" \
  "${inspect[@]}" get greet -- "${fastmcp[@]}"
verdict "mcp-inspect -> npm fastmcp, a prompt with an argument" "I am Ada" \
  "${inspect[@]}" get introduce '{"name":"Ada"}' -- "${fastmcp[@]}"

# The browser of a user who agrees to everything.
mkdir "$log/bin"
printf '#!/bin/sh\ncurl --silent --location --max-time 20 --output /dev/null "$1" &\n' >"$log/bin/xdg-open"
chmod +x "$log/bin/xdg-open"
ready "$protected"
PATH=$log/bin:$PATH calls "mcp-inspect -> FastMCP with its authorization server" \
  --sign-in --url "http://127.0.0.1:$protected/mcp"

# --- Proxies between our client and our server -----------------------------------------------------

ready "$gateway_sse"
for number in first second; do
  calls "supergateway, stdio -> SSE, $number client" --url "http://127.0.0.1:$gateway_sse/sse"
done
ready "$gateway_http"
for number in first second; do
  calls "supergateway, stdio -> HTTP, $number client" --url "http://127.0.0.1:$gateway_http/mcp"
done
ready "$proxy"
for number in first second; do
  calls "mcp-proxy, stdio -> HTTP, $number client" --url "http://127.0.0.1:$proxy/mcp"
  calls "mcp-proxy, stdio -> SSE, $number client" --url "http://127.0.0.1:$proxy/sse"
done
ready "$own"
site=http://127.0.0.1:$own
# Its client starts twice if the first message is not `initialize`.
gateway=(node "$node/.bin/supergateway" --outputTransport stdio --logLevel none)
calls "supergateway, SSE -> stdio" --revision 2025-11-25 -- "${gateway[@]}" --sse "$site/sse"
calls "supergateway, HTTP -> stdio" --revision 2025-11-25 -- "${gateway[@]}" --streamableHttp "$site/mcp"
calls "mcp-remote, HTTP -> stdio" -- node "$node/.bin/mcp-remote" "$site/mcp" --allow-http
calls "mcp-proxy, SSE -> stdio" -- "$dir/mcp-proxy/bin/mcp-proxy" "$site/sse"
calls "mcp-proxy, HTTP -> stdio" -- \
  "$dir/mcp-proxy/bin/mcp-proxy" --transport streamablehttp "$site/mcp"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
