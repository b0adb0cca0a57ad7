"""A traceplaned of one's own for a test: free port, own data folder, ended by its pid."""

import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(ROOT, os.environ.get("TRACEPLANED", "build/traceplaned"))


class Service:
    def __enter__(self):
        self.data = tempfile.mkdtemp(prefix="traceplane-corpus-")
        self.process = subprocess.Popen([BINARY, "--listen", "127.0.0.1:0", "--kineto-socket", "", "--data-dir", self.data],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                return self
        raise RuntimeError(f"{BINARY} did not start: {self.process.wait()}")

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        shutil.rmtree(self.data)
        if code != 0:
            raise RuntimeError(f"traceplaned ended with {code}")

    def call(self, method, path, body=None, headers=None):
        """Status and body of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def json(self, method, path, value=None, expect=(200, 201, 202)):
        """A JSON request and reply; any other status is an error that shows the reply."""
        body = None if value is None else json.dumps(value)
        status, reply = self.call(method, path, body, {"Content-Type": "application/json"})
        if status not in expect:
            raise AssertionError(f"{method} {path}: {status} {reply.decode()}")
        return json.loads(reply) if reply else None

    def register(self, *names):
        types = [dict(zip(("plugin", "type_name"), name.split(".", 1))) for name in names]
        return self.json("POST", "/types", {"types": types})

    def trace(self, **request):
        return self.json("POST", "/traces", request)["id"]

    def stop(self, trace):
        self.json("POST", f"/traces/{trace}/stop")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            view = self.json("GET", f"/traces/{trace}")
            if view["state"] in ("complete", "failed", "cancelled"):
                return view
            time.sleep(0.01)
        raise AssertionError(f"trace {trace} reached no final state")

    def events(self, trace, body, query="", kind="application/json"):
        return self.call("POST", f"/traces/{trace}/events{query}", body, {"Content-Type": kind})

    def file(self, trace, body, query=""):
        return self.call("POST", f"/traces/{trace}/files{query}", body, {"Content-Type": "application/octet-stream"})

    def download(self, trace, query=""):
        status, body = self.call("GET", f"/traces/{trace}/download{query}")
        if status != 200:
            raise AssertionError(f"download of {trace}: {status} {body[:500]}")
        return body
