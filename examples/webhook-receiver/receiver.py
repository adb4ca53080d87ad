"""Receives Soundpost's webhooks and checks who sent them, with Python's standard library alone:

    SECRET=whsec_… python3 examples/webhook-receiver/receiver.py [port, default 9001]
"""
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
TOLERANCE_SECONDS = 5 * 60


def is_signed(headers, body: bytes) -> bool:
    """Standard Webhooks 1.0.0: HMAC-SHA256 over id, timestamp and the body as it came."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    content = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
    # For a day after a rotation there are two signatures: one must match.
    given = [part[3:] for part in headers.get("webhook-signature", "").split() if part.startswith("v1,")]
    return any(hmac.compare_digest(expected, signature) for signature in given)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = is_signed(self.headers, body)
        self.send_response(204 if signed else 401)
        self.end_headers()
        print(f"verified {self.headers['webhook-id']}" if signed else "refused", flush=True)
        if signed:
            print(json.dumps(json.loads(body), indent=2), flush=True)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9001), Receiver)
print(f"waiting for webhooks on port {server.server_port}", flush=True)
server.serve_forever()
