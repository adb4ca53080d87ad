#!/bin/sh
# Extracts the audio from a file, with only curl and jq:
#
#   API=http://127.0.0.1:8080 KEY=sp_… sh extract.sh <file> [format, default mp3]
set -eu
file=$1 format=${2-mp3}

# The same file and format within a day is the same request: a second run creates no second job.
answer=$(curl -sS --fail-with-body "$API/v1/extract" -H "X-API-Key: $KEY" \
  -H "Idempotency-Key: $(cksum <"$file" | tr ' ' -)-$format" \
  -F "file=@$file" -F "request={\"output\":{\"format\":\"$format\"}}") || {
  echo "$answer" >&2
  exit 1
}
job=$(echo "$answer" | jq -r .data.jobId)

while :; do
  answer=$(curl -sS "$API/v1/jobs/$job" -H "X-API-Key: $KEY")
  case $(echo "$answer" | jq -r .data.status) in
    completed) break ;;
    failed)
      echo "$answer" | jq -r '.data.error | "\(.code): \(.message)"' >&2
      exit 1
      ;;
  esac
  sleep 2
done

# -O and -J: use the file name from the service.
curl -sS -OJ --clobber "$API/v1/download/$job" -H "X-API-Key: $KEY"
echo "$answer" | jq -r '.data.outputFile | "\(.filename), \(.size) bytes"'
