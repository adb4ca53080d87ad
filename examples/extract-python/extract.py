"""Takes the audio out of a file, with Python's standard library alone:

    API=http://127.0.0.1:8080 KEY=sp_… python3 extract.py <file> [format, default mp3]
"""
import json
import os
import shutil
import sys
import time
import uuid
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

API, KEY = os.environ["API"], os.environ["KEY"]


def call(path: str, body=None, **headers: str):
    """One request; what it answers. Without a body it is a GET."""
    return urlopen(Request(API + path, data=body, headers={"X-API-Key": KEY, **headers}), timeout=60)


def data(answer) -> dict:
    return json.load(answer)["data"]


def extract(path: Path, audio_format: str) -> dict:
    # The file goes up as it is, without being read into memory.
    with path.open("rb") as video:
        upload = data(call(
            "/v1/uploads", video,
            **{
                "Content-Type": "application/octet-stream",
                "Content-Length": str(path.stat().st_size),
                # A header is ASCII; the name need not be (RFC 6266).
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name, safe='')}",
            },
        ))
    request = {"source": {"type": "upload", "file": upload["file"]}, "output": {"format": audio_format}}
    job = data(call(
        "/v1/extract", json.dumps(request).encode(),
        **{"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())},
    ))
    while True:
        state = data(call(f"/v1/jobs/{job['jobId']}"))
        if state["status"] in ("completed", "failed"):
            return state
        time.sleep(2)


try:
    job = extract(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "mp3")
except HTTPError as refusal:
    error = json.load(refusal)["error"]
    sys.exit(f"{error['code']}: {error['message']}")
if job["status"] == "failed":
    sys.exit(f"{job['error']['code']}: {job['error']['message']}")

output = job["outputFile"]
with call(f"/v1/download/{job['jobId']}") as audio, open(output["filename"], "wb") as file:
    shutil.copyfileobj(audio, file)
print(f"{output['filename']}, {output['size']} bytes")
