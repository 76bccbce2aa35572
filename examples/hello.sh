#!/bin/sh
# A first task by curl: submit it, wait for its end, see what came of it.
#
#     npm start                     in one terminal
#     sh examples/hello.sh          in another
#
# Needs nothing but curl. The server is DROVER_URL, or http://127.0.0.1:4747.
set -eu
url=${DROVER_URL:-http://127.0.0.1:4747}
id=hello-$$-$(date +%s)

echo "submit:"
curl -sS --fail-with-body "$url/tasks" -H 'content-type: application/json' \
  -d "{\"id\": \"$id\", \"agentId\": \"me\", \"action\": \"exec\", \"params\": {\"command\": \"echo hello\"}}"
echo

echo "the same again, as after a lost answer, is the same task:"
curl -sS --fail-with-body "$url/tasks" -H 'content-type: application/json' \
  -d "{\"id\": \"$id\", \"agentId\": \"me\", \"action\": \"exec\", \"params\": {\"command\": \"echo hello\"}}"
echo

echo "wait for its end:"
answer=$(curl -sS --fail-with-body "$url/tasks/$id/wait")
echo "$answer"
case $answer in
*'"state":"done"'*'"output":"hello"'*) ;;
*) echo "this is not what was expected" >&2 && exit 1 ;;
esac

echo "a mistake is answered in words:"
answer=$(curl -sS "$url/tasks" -H 'content-type: application/json' -d '{"agentId": "me", "action": "x", "prioritty": 1}')
echo "$answer"
case $answer in
*'"code":"bad_request"'*) ;;
*) echo "this is not what was expected" >&2 && exit 1 ;;
esac
