"""The PDF translator: runs BabelDOC, which keeps a PDF's layout, and has its passages translated by the caller.

BabelDOC is a program of its own under the AGPL; this one only starts it, as a process, and shares nothing with it but files and a
loopback port. It needs no key, no model and no way out: one request carries everything, both ways, in lines of JSON.

    POST /translate
    > {"bytes": 4711, "lang_in": "en", "lang_out": "de", "pages": "1-3"}     then that many bytes of PDF (pages may be left out)
    < {"ask": {"id": 1, "system": "...", "prompt": "...", "max_tokens": 2048}}
    > {"id": 1, "text": "...", "finish_reason": "stop"}                      and so on, in any order
    < {"pdf": "<base64>"}   or   {"failed": "<message>", "whose": "pdf" or "translator"}

The work ends when the caller disconnects. 503: all slots are in use. GET /healthz: 200.
"""
import base64
import glob
import http.server
import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

MOST_BYTES = 30_000_000
MOST_LINE = 1_000_000
SECONDS = float(os.environ.get("MOST_SECONDS", "1200"))
BABELDOC = shlex.split(os.environ.get("BABELDOC", "babeldoc"))
#: Such as --rpc-doclayout http://layout:8000, for a layout model that runs elsewhere.
BABELDOC_ARGS = shlex.split(os.environ.get("BABELDOC_ARGS", ""))
#: Where BabelDOC has put its models and fonts, whatever the home of this process is.
ASSETS = os.environ.get("ASSETS", os.path.expanduser("~/.cache/babeldoc"))
PASSAGES_AT_ONCE = "4"
slots = threading.BoundedSemaphore(int(os.environ.get("SLOTS", "2")))

LANGUAGE = re.compile(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{2,8})*$")
PAGES = re.compile(r"^\d{1,6}-\d{1,6}$")
#: What BabelDOC prints on a PDF that it cannot translate, and the message for it.
COMPLAINTS = [
    (re.compile(r"scanned pages|scanned pdf|ScannedPDF", re.I), "its pages seem to be scans, or hold hardly any text"),
    (re.compile(r"contains no paragraphs", re.I), "no paragraphs are found in it"),
    (re.compile(r"document closed or encrypted|cannot authenticate|FileDataError|cannot open broken", re.I), "it is broken or protected"),
]


class Disconnected(Exception):
    """The caller has disconnected."""


class Job:
    """A translation in progress: the questions that wait for the caller's answers."""

    def __init__(self, say):
        # In hexadecimal: a token that began with "-" would be an option to BabelDOC.
        self.token = secrets.token_hex(24)
        self.say = say
        self.lock = threading.Lock()
        self.waiting = {}
        self.last = 0
        self.disconnected = threading.Event()
        self.process = None

    def ask(self, body):
        messages = body["messages"]
        question = {
            "system": "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system"),
            "prompt": "\n\n".join(str(m["content"]) for m in messages if m["role"] != "system"),
            "max_tokens": body.get("max_tokens") or 2048,
        }
        answered = threading.Event()
        with self.lock:
            self.last += 1
            number = self.last
            self.waiting[number] = slot = {"answered": answered}
        self.say({"ask": {"id": number, **question}})
        while not answered.wait(1):
            if self.disconnected.is_set():
                raise Disconnected
        return slot["answer"]

    def answer(self, line):
        with self.lock:
            slot = self.waiting.pop(line["id"], None)
        if slot is not None:
            slot["answer"] = line
            slot["answered"].set()

    def leave(self):
        self.disconnected.set()
        with self.lock:
            process = self.process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def start(self, command, folder, log):
        with self.lock:
            if self.disconnected.is_set():
                raise Disconnected
            self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "HOME": home_in(folder), "COLUMNS": "1000"})
        return self.process


jobs = {}


class Models(http.server.BaseHTTPRequestHandler):
    """What BabelDOC takes for a model server, on loopback: hands each question to the caller of its job."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        job = jobs.get(self.headers.get("authorization", "").removeprefix("Bearer "))
        if job is None:
            return self.reply(401, {"error": {"message": "no such job"}})
        try:
            answer = job.ask(json.loads(body))
        except (Disconnected, OSError):
            # Not 5xx, which would be retried.
            return self.reply(400, {"error": {"message": "the caller has disconnected"}})
        message = {"role": "assistant", "content": answer["text"]}
        choice = {"index": 0, "message": message, "finish_reason": answer.get("finish_reason") or "stop"}
        self.reply(200, {"id": f"answer-{answer['id']}", "object": "chat.completion", "created": 0, "model": "caller", "choices": [choice]})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A caller that has disconnected does not get the response, which is no error.
        if not isinstance(sys.exc_info()[1], (OSError, Disconnected)):
            super().handle_error(request, client_address)


models = Server(("127.0.0.1", 0), Models)


class Chunks:
    """Reads a chunked request body, by lines and by bytes."""

    def __init__(self, stream):
        self.stream = stream
        self.rest = b""
        self.ended = False

    def more(self):
        # The end of the line after a chunk may come only with the next one.
        head = b"\n"
        while head in (b"\r\n", b"\n"):
            head = self.stream.readline(100)
        size = int(head.split(b";")[0], 16) if head else 0
        if size > MOST_BYTES:
            raise ValueError("too much at once")
        self.ended = size == 0
        self.rest += self.stream.read(size)

    def line(self):
        while b"\n" not in self.rest and not self.ended:
            if len(self.rest) > MOST_LINE:
                raise ValueError("a line is too long")
            self.more()
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line) if line.strip() else None

    def bytes(self, count):
        parts, have = [self.rest], len(self.rest)
        while have < count and not self.ended:
            self.rest = b""
            self.more()
            parts.append(self.rest)
            have += len(self.rest)
        whole = b"".join(parts)
        self.rest = whole[count:]
        if len(whole) < count:
            raise ValueError("the PDF is not whole")
        return whole[:count]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    begun = False
    #: A caller that is silent for longer has disconnected.
    timeout = SECONDS + 60

    def do_GET(self):
        self.plain(200 if self.path == "/healthz" else 404)

    def do_POST(self):
        self.close_connection = True
        if self.path != "/translate" or self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.plain(404)
        if not slots.acquire(blocking=False):
            return self.plain(503)
        try:
            self.translate(Chunks(self.rfile))
        except (ValueError, KeyError, TypeError) as error:
            sys.stderr.write(f"refused: {error}\n")
            if not self.begun:
                self.plain(400)
        except (Disconnected, OSError):
            pass
        finally:
            slots.release()

    def translate(self, chunks):
        order = chunks.line()
        command = command_of(order)
        if not 0 < order["bytes"] <= MOST_BYTES:
            raise ValueError("bytes is out of range")
        pdf = chunks.bytes(order["bytes"])
        self.begun = True
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("connection", "close")
        self.end_headers()
        lock = threading.Lock()

        def say(line):
            with lock:
                self.wfile.write(json.dumps(line).encode() + b"\n")
                self.wfile.flush()

        job = Job(say)
        jobs[job.token] = job
        threading.Thread(target=listen, args=(chunks, job), daemon=True).start()
        try:
            say(run(job, command, pdf))
        finally:
            jobs.pop(job.token, None)
            job.leave()

    def plain(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.send_header("connection", "close")
        self.end_headers()

    def log_message(self, *_):
        pass


def listen(chunks, job):
    """Takes the caller's answers until there are no more, which is when it has disconnected."""
    try:
        while (line := chunks.line()) is not None:
            job.answer(line)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    job.leave()


def command_of(order):
    for language in (order["lang_in"], order["lang_out"]):
        if not LANGUAGE.match(language):
            raise ValueError("not a language")
    command = ["--lang-in", order["lang_in"], "--lang-out", order["lang_out"]]
    if order.get("pages") is not None:
        if not PAGES.match(order["pages"]):
            raise ValueError("not pages")
        command += ["--pages", order["pages"], "--only-include-translated-page"]
    return command


def run(job, command, pdf):
    """Runs BabelDOC on a PDF in a folder of its own. Nothing of one job is kept for another: its cache of translations is off."""
    with tempfile.TemporaryDirectory(prefix="translate-") as folder:
        with open(os.path.join(folder, "document.pdf"), "wb") as file:
            file.write(pdf)
        with open(os.path.join(folder, "log"), "w+", encoding="utf8", errors="replace") as log:
            process = job.start([
                *BABELDOC, "--files", "document.pdf", "--output", "out", "--working-dir", "work", *command, "--no-dual", "--watermark-output-mode", "no_watermark",
                "--openai", "--openai-model", "caller", "--openai-base-url", f"http://127.0.0.1:{models.server_port}/v1", "--openai-api-key", job.token,
                "--ignore-cache", "--no-auto-extract-glossary", "--qps", "20", "--pool-max-workers", PASSAGES_AT_ONCE, *BABELDOC_ARGS,
            ], folder, log)
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                return {"failed": f"it took longer than {SECONDS:.0f} seconds", "whose": "pdf"}
            if job.disconnected.is_set():
                raise Disconnected
            log.seek(0)
            output = log.read()
        made = glob.glob(os.path.join(folder, "out", "*.mono.pdf"))
        if made:
            with open(made[0], "rb") as file:
                return {"pdf": base64.b64encode(file.read()).decode()}
        for pattern, message in COMPLAINTS:
            if pattern.search(output):
                return {"failed": message, "whose": "pdf"}
        sys.stderr.write(output[-4000:] + "\n")
        return {"failed": "BabelDOC made no PDF of it", "whose": "translator"}


def home_in(folder):
    """A home of its own, with the models and fonts of the image: what BabelDOC writes there ends with the job."""
    cache = os.path.join(folder, "home", ".cache", "babeldoc")
    os.makedirs(cache)
    for kind in ("fonts", "models", "cmap", "tiktoken"):
        installed = os.path.join(ASSETS, kind)
        if os.path.isdir(installed):
            os.symlink(installed, os.path.join(cache, kind))
    return os.path.join(folder, "home")


def main():
    threading.Thread(target=models.serve_forever, daemon=True).start()
    server = Server((os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))), Handler)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
