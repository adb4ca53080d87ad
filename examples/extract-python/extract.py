"""Extracts the audio from a file or URL, with Python's standard library only:

    API=http://127.0.0.1:8080 KEY=sp_… python3 extract.py <file or URL> [format, default mp3] [port for a webhook]

With a port, it also waits for the job's webhook and verifies it.
"""
import base64
import hashlib
import hmac
import json
import os
import shutil
import sys
import time
import uuid
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

API, KEY = os.environ["API"], os.environ["KEY"]
TOLERANCE_SECONDS = 5 * 60


def call(path: str, body=None, **headers: str):
    """One request; what it answers. Without a body it is a GET."""
    return urlopen(Request(API + path, data=body, headers={"X-API-Key": KEY, **headers}), timeout=60)


def data(answer) -> dict:
    return json.load(answer)["data"]


def upload(path: Path) -> str:
    # Streams the file instead of reading it into memory.
    with path.open("rb") as video:
        return data(call(
            "/v1/uploads", video,
            **{
                "Content-Type": "application/octet-stream",
                "Content-Length": str(path.stat().st_size),
                # Headers are ASCII, file names may not be (RFC 6266).
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name, safe='')}",
            },
        ))["file"]


def submit(source: str, audio_format: str, webhook=None) -> str:
    """The id of the job."""
    is_url = source.startswith(("http://", "https://"))
    request = {
        "source": {"type": "url", "url": source} if is_url else {"type": "upload", "file": upload(Path(source))},
        "output": {"format": audio_format},
        "options": {"webhook": webhook} if webhook else {},
    }
    # If a request got no answer, retry it with the same key: it creates no second job.
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    return data(call("/v1/extract", json.dumps(request).encode(), **headers))["jobId"]


def follow(job_id: str):
    """The job at each change until it has ended, by its events. A stream that breaks off is asked for again."""
    while True:
        try:
            with call(f"/v1/jobs/{job_id}/events", Accept="text/event-stream") as events:
                for line in events:
                    if line.startswith(b"data: "):
                        job = json.loads(line.removeprefix(b"data: "))
                        yield job
                        if job["status"] in ("completed", "failed"):
                            return
        except HTTPError:
            raise
        except (OSError, HTTPException):
            pass
        time.sleep(2)


def is_signed(headers, body: bytes, secret: str) -> bool:
    """Standard Webhooks 1.0.0: HMAC-SHA256 over id, timestamp and the body as it came."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    # For a day after a rotation there are two signatures: one must match.
    given = [part[3:] for part in headers.get("webhook-signature", "").split() if part.startswith("v1,")]
    return any(hmac.compare_digest(expected, signature) for signature in given)


class Receiver(BaseHTTPRequestHandler):
    secret, event = "", None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = is_signed(self.headers, body, Receiver.secret)
        self.send_response(204 if signed else 401)
        self.end_headers()
        if signed:
            Receiver.event = json.loads(body)

    def log_message(self, *_):
        pass


def main(source: str, audio_format="mp3", port=None) -> None:
    server = HTTPServer(("127.0.0.1", int(port)), Receiver) if port else None
    Receiver.secret = data(call("/v1/webhooks/secret"))["secret"] if port else ""
    job_id = submit(source, audio_format, f"http://127.0.0.1:{port}/" if port else None)
    for job in follow(job_id):
        print(f"{job['progress']} % {job['currentStep'] or ''}", file=sys.stderr)
    if job["status"] == "failed":
        sys.exit(f"{job['error']['code']}: {job['error']['message']}")
    output = job["outputFile"]
    with call(f"/v1/download/{job_id}") as audio, open(output["filename"], "wb") as file:
        shutil.copyfileobj(audio, file)
    print(f"{output['filename']}, {output['size']} bytes")
    while server and not Receiver.event:
        server.handle_request()
    if server:
        print(f"webhook received: {Receiver.event['event']}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except HTTPError as refusal:
        error = json.load(refusal)["error"]
        sys.exit(f"{error['code']}: {error['message']}")
