"""A stand-in for the Hugging Face Hub on this machine: as much of its HTTP as uploading and fetching a preset needs."""

import base64
import contextlib
import hashlib
import http.server
import json
import threading


class Hub:
    """What is on it: for each repository its files. `token` is the one that may write.

    `break_off_after` makes the next answer of a file end after so many bytes, and then no more.
    """

    def __init__(self):
        self.repositories = {}
        self.token = "hf_writer"
        self.break_off_after = None
        self.requests = []

    def commit(self, repository):
        """Changes with every change of a file."""
        names = sorted(self.repositories[repository].items())
        return hashlib.sha1(repr(names).encode()).hexdigest()


@contextlib.contextmanager
def running():
    """Gives the `Hub` and its address."""
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(hub):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, value=b"", **headers):
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name.replace("_", "-"), text)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def missing(self, code):
            self.answer(404, {"error": code}, X_Error_Code=code)

        def do_GET(self):
            hub.requests.append((self.command, self.path))
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[:2] == ["api", "models"] and "tree" in parts:
                files = hub.repositories["/".join(parts[2:4])]
                self.answer(
                    200,
                    [
                        {"type": "file", "path": name, "size": len(data), "oid": _oid(data)}
                        for name, data in files.items()
                    ],
                )
            elif parts[:2] == ["api", "models"]:
                self.tell("/".join(parts[2:4]))
            elif len(parts) >= 5 and parts[2] == "resolve":
                self.file("/".join(parts[:2]), "/".join(parts[4:]))
            else:
                self.missing("RepoNotFound")

        do_HEAD = do_GET

        def tell(self, repository):
            if repository not in hub.repositories:
                return self.missing("RepoNotFound")
            files = hub.repositories[repository]
            self.answer(
                200,
                {
                    "id": repository,
                    "sha": hub.commit(repository),
                    "siblings": [{"rfilename": name} for name in files],
                },
            )

        def file(self, repository, name):
            data = hub.repositories.get(repository, {}).get(name)
            if data is None:
                return self.missing("EntryNotFound")
            headers = {
                "ETag": f'"{_oid(data)}"',
                "X-Repo-Commit": hub.commit(repository),
                "Accept-Ranges": "bytes",
            }
            start = 0
            if wanted := self.headers.get("Range"):
                start = int(wanted.removeprefix("bytes=").split("-")[0])
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            rest = data[start:]
            if hub.break_off_after is not None and self.command == "GET" and len(rest) > 1000:
                part, hub.break_off_after = rest[: hub.break_off_after], None
                self.answer(200, part, **headers | {"Content-Length": str(len(rest))})
                self.close_connection = True
                return
            self.answer(206 if start else 200, rest, **headers)

        def do_POST(self):
            hub.requests.append((self.command, self.path))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != f"Bearer {hub.token}":
                return self.answer(401, {"error": "Invalid username or password."})
            parts = self.path.strip("/").split("/")
            if self.path == "/api/repos/create":
                asked = json.loads(body)
                repository = f"{asked.get('organization') or 'me'}/{asked['name']}"
                hub.repositories.setdefault(repository, {})
                self.answer(200, {"url": f"/{repository}", "name": repository})
            elif self.path == "/api/validate-yaml":
                self.answer(200, {"errors": [], "warnings": []})
            elif "preupload" in parts:
                files = json.loads(body)["files"]
                self.answer(
                    200,
                    {
                        "files": [
                            {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                            for f in files
                        ]
                    },
                )
            elif "commit" in parts:
                repository = "/".join(parts[2:4])
                for line in map(json.loads, body.decode().splitlines()):
                    if line["key"] == "file":
                        value = line["value"]
                        data = base64.b64decode(value["content"])
                        hub.repositories[repository][value["path"]] = data
                commit = hub.commit(repository)
                url = f"/{repository}/commit/{commit}"
                self.answer(200, {"commitUrl": url, "commitOid": commit, "pullRequestUrl": None})
            else:
                self.missing("RepoNotFound")

        def log_message(self, *_):
            pass

    return Handler


def _oid(data):
    return hashlib.sha1(data).hexdigest()
